// Streaming accumulators: every new observation adds to every task of another environment, in one pass over the codes.
//
//     mass_i += sum_u k(s_iu) dm_u,   value_i += sum_u k(s_iu) dv_u,   k(s) = max(0, (s - s0) / (1 - s0))^2,
// with s_iu the inner product of the int8 codes. No lists, no eviction, no recall: exact for these codes.
#include "int8.h"
#include "state.h"

#if defined(__AVX512VNNI__)
namespace {

struct Updates {
  float slope[ROWS], shift[ROWS], mass[ROWS], value[ROWS];
  int32_t begin[ROWS];
  int64_t start[ROWS], stop[ROWS];  // own environment
};

inline __mmask16 foreign(int64_t column, int64_t start, int64_t stop) {
  const int64_t from = std::min<int64_t>(16, std::max<int64_t>(0, start - column)), to = std::min<int64_t>(16, std::max<int64_t>(0, stop - column));
  return __mmask16(~((0xFFFFu >> (16 - to)) & ~((1u << from) - 1)));
}

// A tile's weights, added to mass and value of its 32 tasks; some: a task may be of a query's own environment.
template <bool some>
inline void add_tile(const uint8_t* packed, const int8_t* queries, int64_t depth, const Updates& u, const float* scales, int64_t column,
                     float* mass, float* value) {
#define BEGIN(r) __m512i left##r = _mm512_set1_epi32(u.begin[r]), right##r = left##r;
  EACH_ROW(BEGIN)
#undef BEGIN
  for (int64_t d = 0; d < depth; ++d) {
    const __m512i a = _mm512_loadu_si512(packed + d * 64), b = _mm512_loadu_si512(packed + (depth + d) * 64);
#define STEP(r)                                          \
  {                                                      \
    int32_t four;                                        \
    std::memcpy(&four, queries + (d * ROWS + r) * 4, 4); \
    const __m512i q = _mm512_set1_epi32(four);           \
    DOT(left##r, a, q);                                  \
    DOT(right##r, b, q);                                 \
  }
    EACH_ROW(STEP)
#undef STEP
  }
  const __m512 a = _mm512_loadu_ps(scales), b = _mm512_loadu_ps(scales + LANES), zero = _mm512_setzero_ps();
  __m512 m0 = _mm512_loadu_ps(mass), m1 = _mm512_loadu_ps(mass + LANES), v0 = _mm512_loadu_ps(value), v1 = _mm512_loadu_ps(value + LANES);
#define FINISH(r)                                                                                                            \
  {                                                                                                                          \
    const __m512 slope = _mm512_set1_ps(u.slope[r]), shift = _mm512_set1_ps(u.shift[r]);                                     \
    __m512 x = _mm512_max_ps(zero, _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(left##r), a), slope, shift));            \
    __m512 y = _mm512_max_ps(zero, _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(right##r), b), slope, shift));           \
    if (some) x = _mm512_maskz_mov_ps(foreign(column, u.start[r], u.stop[r]), x);                                            \
    if (some) y = _mm512_maskz_mov_ps(foreign(column + LANES, u.start[r], u.stop[r]), y);                                    \
    x = _mm512_mul_ps(x, x);                                                                                                 \
    y = _mm512_mul_ps(y, y);                                                                                                 \
    m0 = _mm512_fmadd_ps(x, _mm512_set1_ps(u.mass[r]), m0);                                                                  \
    m1 = _mm512_fmadd_ps(y, _mm512_set1_ps(u.mass[r]), m1);                                                                  \
    v0 = _mm512_fmadd_ps(x, _mm512_set1_ps(u.value[r]), v0);                                                                 \
    v1 = _mm512_fmadd_ps(y, _mm512_set1_ps(u.value[r]), v1);                                                                 \
  }
  EACH_ROW(FINISH)
#undef FINISH
  _mm512_storeu_ps(mass, m0);
  _mm512_storeu_ps(mass + LANES, m1);
  _mm512_storeu_ps(value, v0);
  _mm512_storeu_ps(value + LANES, v1);
}

}  // namespace

// packed, scale: as envsched_quantise made them. queries int8 [S][D4] with query_scale [S]: codes of the sources, D4 = D rounded up
// to 4; dm, dv float64 [S]; start, stop int64 [S] their own environments' rows. sums float32 [N][4]: value and mass are added to
// the last two, the cross relation's; peak keeps up.
EXPORT void envsched_stream(const uint8_t* packed, const float* scale, int64_t N, int64_t D, const int8_t* queries,
                            const float* query_scale, const double* dm, const double* dv, const int64_t* start, const int64_t* stop,
                            int64_t count, double floor, float* sums, float* peak, int threads) {
  const Vectors v{nullptr, packed, scale, nullptr, D, (D + 3) / 4 * 4};
  const int64_t depth = v.D4 / 4, tiles = (count + ROWS - 1) / ROWS, blocks = (N + GROUPS * LANES - 1) / (GROUPS * LANES);
  std::vector<int8_t> codes(size_t(tiles) * ROWS * v.D4);
  std::vector<Updates> updates(tiles);
  const double gain = 1 / (1 - floor);
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t rows = std::min<int64_t>(ROWS, count - t * ROWS);
    int8_t* tile = codes.data() + t * ROWS * v.D4;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t d = 0; d < v.D4; d += 4) std::memcpy(tile + (d / 4 * ROWS + r) * 4, queries + (t * ROWS + r) * v.D4 + d, 4);
    for (int64_t r = 0; r < ROWS; ++r) {
      const int64_t s = t * ROWS + r;
      const bool real = r < rows;
      updates[t].slope[r] = real ? float(query_scale[s] * gain) : 0.f;
      updates[t].shift[r] = real ? float(-floor * gain) : 0.f;
      updates[t].mass[r] = real ? float(dm[s]) : 0.f;
      updates[t].value[r] = real ? float(dv[s]) : 0.f;
      updates[t].start[r] = real ? start[s] : 0;
      updates[t].stop[r] = real ? stop[s] : 0;
      updates[t].begin[r] = 0;
      for (int64_t d = 0; real && d < v.D4; ++d) updates[t].begin[r] -= 128 * queries[s * v.D4 + d];
    }
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t column = block * GROUPS * LANES, last = std::min<int64_t>(GROUPS * LANES, N - column);
    float mass[GROUPS * LANES] = {}, value[GROUPS * LANES] = {};
    for (int64_t t = 0; t < tiles; ++t) {
      const Updates& u = updates[t];
      bool some = false;
      for (int r = 0; r < ROWS; ++r) some |= u.start[r] < column + GROUPS * LANES && u.stop[r] > column;
      (some ? add_tile<true> : add_tile<false>)(packed + column * v.D4, codes.data() + t * ROWS * v.D4, depth, u, scale + column, column,
                                                mass, value);
    }
    for (int64_t i = 0; i < last; ++i) {
      sums[(column + i) * 4 + 2] += value[i];
      sums[(column + i) * 4 + 3] += mass[i];
      float& top = peak[(column + i) / BLOCK_ROWS];
      top = std::max(top, sums[(column + i) * 4] + sums[(column + i) * 4 + 2]);
    }
  }
}
#endif

// Newly observed tasks offer themselves to the lists of all tasks of other environments: one int8 pass over the targets.
//
// A pair whose bound scale_x scale_y <x8, y8> + r_x + (1 + r_x) r_y lies below the last weight of the target's list can't
// enter it; what passes is scored exactly. Lists stay what a build from scratch gives.
#include "int8.h"

#if defined(__AVX512VNNI__)
namespace {

struct Offer {
  float scale[ROWS], slack[ROWS];  // of each source; slack without the target's share
  int32_t begin[ROWS];
};

struct Hits {
  uint32_t lanes[ROWS];
};

// floor: last weight of each of the 32 targets; residual: theirs.
inline bool offer_tile(const uint8_t* packed, const int8_t* queries, int64_t depth, const Offer& o, const float* scales,
                       const float* residuals, const float* floor, Hits& hits) {
#define BEGIN(r) __m512i left##r = _mm512_set1_epi32(o.begin[r]), right##r = left##r;
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
  // likeness + slack_x + (1 + r_x) r_y >= floor; 1.02 covers 1 + r_x and the rounding of these few float32 operations.
  const __m512 a = _mm512_loadu_ps(scales), b = _mm512_loadu_ps(scales + LANES), share = _mm512_set1_ps(1.02f);
  const __m512 low = _mm512_fnmadd_ps(share, _mm512_loadu_ps(residuals), _mm512_loadu_ps(floor));
  const __m512 high = _mm512_fnmadd_ps(share, _mm512_loadu_ps(residuals + LANES), _mm512_loadu_ps(floor + LANES));
  uint32_t any = 0;
#define FINISH(r)                                                                                                             \
  {                                                                                                                           \
    const __m512 scale = _mm512_set1_ps(o.scale[r]), slack = _mm512_set1_ps(o.slack[r]);                                      \
    const __m512 x = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(left##r), a), scale, slack);                            \
    const __m512 y = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(right##r), b), scale, slack);                           \
    hits.lanes[r] = uint32_t(_mm512_cmp_ps_mask(x, low, _CMP_GE_OQ)) | uint32_t(_mm512_cmp_ps_mask(y, high, _CMP_GE_OQ)) << 16; \
    any |= hits.lanes[r];                                                                                                     \
  }
  EACH_ROW(FINISH)
#undef FINISH
  return any != 0;
}

// Put a candidate into a list of K slots in order (weight descending, row ascending); false when it does not enter.
inline bool enter(double* weight, int64_t* row, int64_t K, double w, int64_t j) {
  int64_t place = K;
  while (place > 0 && (weight[place - 1] < w || (weight[place - 1] == w && row[place - 1] > j))) --place;
  if (place == K) return false;
  for (int64_t k = K - 1; k > place; --k) weight[k] = weight[k - 1], row[k] = row[k - 1];
  weight[place] = w;
  row[place] = j;
  return true;
}

}  // namespace

// x float32 [N, D] with packed, scale, residual as envsched_quantise made them; source int64 [S], in no list yet; start,
// stop int64 [S] the rows of their own environments. weight float64 [N, K] and row int64 [N, K] are the lists, updated.
EXPORT void envsched_offer(const float* x, const uint8_t* packed, const float* scale, const float* residual, int64_t N, int64_t D,
                           const int64_t* source, const int64_t* start, const int64_t* stop, int64_t S, int64_t K, double* weight,
                           int64_t* row, int threads) {
  const Vectors v{x, packed, scale, residual, D, (D + 3) / 4 * 4};
  const int64_t depth = v.D4 / 4, tiles = (S + ROWS - 1) / ROWS, blocks = (N + GROUPS * LANES - 1) / (GROUPS * LANES);
  std::vector<int8_t> codes(size_t(tiles) * ROWS * v.D4);
  std::vector<Offer> offers(tiles);
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t count = std::min<int64_t>(ROWS, S - t * ROWS);
    pack_queries(v, source + t * ROWS, count, codes.data() + t * ROWS * v.D4);
    for (int64_t r = 0; r < ROWS; ++r) {
      const bool real = r < count;
      const int64_t j = real ? source[t * ROWS + r] : 0;
      offers[t].scale[r] = real ? scale[j] : 0.f;
      offers[t].slack[r] = real ? residual[j] * 1.001f + 1e-6f : -8.f;  // below any floor
      offers[t].begin[r] = 0;
      for (int64_t d = 0; real && d < v.D4; ++d) offers[t].begin[r] -= 128 * v.code(j, d);
    }
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t column = block * GROUPS * LANES, last = std::min<int64_t>(GROUPS * LANES, N - column);
    float floor[GROUPS * LANES];
    for (int64_t i = 0; i < GROUPS * LANES; ++i)
      floor[i] = i < last ? std::nextafterf(float(weight[(column + i) * K + K - 1]), 0.f) : 9.f;  // above any similarity
    Hits hits;
    for (int64_t t = 0; t < tiles; ++t) {
      if (!offer_tile(packed + column * v.D4, codes.data() + t * ROWS * v.D4, depth, offers[t], scale + column, residual + column, floor, hits))
        continue;
      for (int64_t s = t * ROWS; s < std::min<int64_t>(S, (t + 1) * ROWS); ++s)
        for (uint32_t lanes = hits.lanes[s - t * ROWS]; lanes; lanes &= lanes - 1) {
          const int64_t l = __builtin_ctz(lanes), i = column + l;
          if (i >= start[s] && i < stop[s]) continue;
          const double w = clipped(exact_dot(x + i * D, x + source[s] * D, D));
          if (w > 0 && enter(weight + i * K, row + i * K, K, w, source[s]))
            floor[l] = std::nextafterf(float(weight[i * K + K - 1]), 0.f);
        }
    }
  }
}
#endif

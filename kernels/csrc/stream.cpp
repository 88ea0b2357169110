// Streaming accumulators: every new observation adds to every task of another environment, in one pass over the codes.
//
//     mass_i += sum_u k(s_iu) dm_u,   value_i += sum_u k(s_iu) dv_u,   k(s) = max(0, (s - s0) / (1 - s0))^2,
// with s_iu the inner product of the int8 codes. No lists, no eviction, no recall: exact for these codes.
#include "int8.h"
#include "lanes.h"
#include "state.h"

#if defined(__AVX512VNNI__)
namespace {

struct alignas(64) Updates {
  float slope[SOURCES] = {}, shift[SOURCES] = {}, mass[SOURCES] = {}, value[SOURCES] = {};
  Homes homes;
};

// What the sources of a panel add to mass and value of TASKS tasks.
inline void add_tile(const Products& products, const Updates& u, int64_t groups, const float* scales, int64_t column, __m512& mass, __m512& value) {
  const __m512 zero = _mm512_setzero_ps();
  const bool some = u.homes.meet(column, column + TASKS);
  __m512 m[TASKS], v[TASKS];
  for (int64_t t = 0; t < TASKS; ++t) m[t] = v[t] = zero;
  for (int64_t g = 0; g < groups; ++g) {
    const __m512 slope = _mm512_load_ps(u.slope + g * LANES), shift = _mm512_load_ps(u.shift + g * LANES);
    const __m512 dm = _mm512_load_ps(u.mass + g * LANES), dv = _mm512_load_ps(u.value + g * LANES);
    for (int64_t t = 0; t < TASKS; ++t) {
      __m512 x = _mm512_max_ps(zero, _mm512_fmadd_ps(_mm512_mul_ps(products.lane(t, g), _mm512_set1_ps(scales[t])), slope, shift));
      if (__builtin_expect(some, 0)) x = _mm512_maskz_mov_ps(__mmask16(~u.homes.meet(column + t, column + t + 1) >> (g * LANES)), x);
      x = _mm512_mul_ps(x, x);
      m[t] = _mm512_fmadd_ps(x, dm, m[t]);
      v[t] = _mm512_fmadd_ps(x, dv, v[t]);
    }
  }
  mass = _mm512_add_ps(mass, sum_rows(m));
  value = _mm512_add_ps(value, sum_rows(v));
}

}  // namespace

// codes, scale: as envsched_quantise made them. queries int8 [S][D4] with query_scale [S]: codes of the sources, D4 = D rounded up
// to 4; dm, dv float64 [S]; start, stop int64 [S] their own environments' rows. sums float32 [N][4]: value and mass are added to
// the last two, the cross relation's; peak keeps up.
EXPORT void envsched_stream(const uint8_t* codes, const float* scale, int64_t N, int64_t D, const int8_t* queries,
                            const float* query_scale, const double* dm, const double* dv, const int64_t* start, const int64_t* stop,
                            int64_t count, double floor, float* sums, float* peak, double shrinkage, int threads) {
  const Vectors v{nullptr, codes, scale, nullptr, D, (D + 3) / 4 * 4};
  std::vector<Panel> panels((count + SOURCES - 1) / SOURCES);
  std::vector<Updates> updates(panels.size());
  const double gain = 1 / (1 - floor);
  for (size_t p = 0; p < panels.size(); ++p) {
    const int64_t first = p * SOURCES, sources = std::min<int64_t>(SOURCES, count - first);
    panels[p].fill(sources, v.D4, 0, [&](int64_t s) { return queries + (first + s) * v.D4; });
    Updates& u = updates[p];
    for (int64_t s = 0; s < sources; ++s) {
      u.slope[s] = float(query_scale[first + s] * gain);
      u.shift[s] = float(-floor * gain);
      u.mass[s] = float(dm[first + s]);
      u.value[s] = float(dv[first + s]);
    }
    u.homes.fill(start + first, stop + first, sources);
  }
#pragma omp parallel num_threads(threads)
  {
    const Registers registers;
    Products products;
#pragma omp for schedule(static)
    for (int64_t column = 0; column < N; column += TASKS) {
      fetch_ahead(v, column);
      __m512 mass = _mm512_setzero_ps(), value = mass;
      for (size_t p = 0; p < panels.size(); ++p) {
        multiply(v.of(column), v.D4, panels[p], products);
        add_tile(products, updates[p], panels[p].groups, scale + column, column, mass, value);
      }
      alignas(64) float more_mass[TASKS], more_value[TASKS];
      _mm512_store_ps(more_mass, mass);
      _mm512_store_ps(more_value, value);
      float& top = peak[column / BLOCK_ROWS];
      for (int64_t i = 0; i < std::min(TASKS, N - column); ++i) {
        float* sum = sums + (column + i) * 4;
        sum[2] += more_value[i];
        sum[3] += more_mass[i];
        top = std::max(top, height(sum, float(shrinkage)));
      }
    }
  }
}
#endif

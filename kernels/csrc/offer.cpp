// Newly observed tasks offer themselves to the lists of all tasks of other environments: one int8 pass over the targets.
//
// A pair whose bound scale_x scale_y <x8, y8> + r_x + (1 + r_x) r_y lies below the last weight of the target's list can't
// enter it; what passes is scored exactly. Lists stay what a build from scratch gives.
#include "int8.h"

#if defined(__AVX512VNNI__)
namespace {

struct Offers {
  Bounds bounds;  // likeness and slack, but for the target's share
  Homes homes;
};

}  // namespace

// x float32 [N, D] with codes, scale, residual as envsched_quantise made them; source int64 [S], in no list yet; start,
// stop int64 [S] the rows of their own environments. weight float64 [N, K] and row int64 [N, K] are the lists, updated.
EXPORT void envsched_offer(const float* x, const uint8_t* codes, const float* scale, const float* residual, int64_t N, int64_t D,
                           const int64_t* source, const int64_t* start, const int64_t* stop, int64_t S, int64_t K, double* weight,
                           int64_t* row, int threads) {
  const Vectors v{x, codes, scale, residual, D, (D + 3) / 4 * 4};
  const std::vector<Panel> panels = panels_of(v, source, S);
  std::vector<Offers> offers(panels.size());
  for (int64_t s = 0; s < S; ++s) {
    offers[s / SOURCES].bounds.slope[s % SOURCES] = scale[source[s]];
    offers[s / SOURCES].bounds.shift[s % SOURCES] = residual[source[s]] * 1.001f + 1e-6f;
  }
  for (size_t p = 0; p < panels.size(); ++p) offers[p].homes.fill(start + p * SOURCES, stop + p * SOURCES, panels[p].count);
#pragma omp parallel num_threads(threads)
  {
    const Registers registers;
    Products products;
    Reached reached;
    float low[TASKS];
#pragma omp for schedule(static)
    for (int64_t column = 0; column < N; column += TASKS) {
      fetch_ahead(v, column);
      for (size_t p = 0; p < panels.size(); ++p) {
        multiply(v.of(column), v.D4, panels[p], products);
        // likeness + slack_x + (1 + r_x) r_y >= floor; 1.02 covers 1 + r_x and the rounding of these few float32 operations.
        for (int64_t t = 0; t < TASKS; ++t)
          low[t] = column + t < N ? std::nextafterf(float(weight[(column + t) * K + K - 1]), 0.f) - 1.02f * residual[column + t] : 9.f;
        reached.compare(products, panels[p].groups, scale + column, offers[p].bounds, low);
        for (uint32_t tasks = reached.tasks(); tasks; tasks &= tasks - 1) {
          const int64_t t = __builtin_ctz(tasks), i = column + t;
          for (uint64_t sources = reached.by(t) & ~offers[p].homes.meet(i, i + 1); sources; sources &= sources - 1) {
            const int64_t s = __builtin_ctzll(sources), j = source[p * SOURCES + s];
            const double w = clipped(exact_dot(x + i * D, x + j * D, D));
            if (w > 0) enter(weight + i * K, row + i * K, K, w, j);
          }
        }
      }
    }
  }
}
#endif

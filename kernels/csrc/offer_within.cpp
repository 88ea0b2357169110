// Newly observed tasks offer themselves to the lists of their own environments, by exact similarities.
#include "common.h"

// x float32 [N, D]; source int64 [S], in no list yet, with start, stop int64 [S] the rows of their environments. weight float64 [N, K]
// and row int64 [N, K] are the lists, updated.
EXPORT void envsched_offer_within(const float* x, int64_t D, const int64_t* source, const int64_t* start, const int64_t* stop, int64_t S,
                                  int64_t K, double* weight, int64_t* row) {
  for (int64_t s = 0; s < S; ++s)
    for (int64_t i = start[s]; i < stop[s]; ++i) {
      if (i == source[s]) continue;
      const double w = clipped(exact_dot(x + i * D, x + source[s] * D, D));
      if (w > 0) enter(weight + i * K, row + i * K, K, w, source[s]);
    }
}

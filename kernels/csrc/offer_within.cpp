// Newly observed tasks offer themselves to the lists of their own environments, by exact similarities.
#include "common.h"

namespace {

// Put j into a list of K slots in order (weight descending, row ascending), if it belongs there.
inline void enter(double* weight, int64_t* row, int64_t K, double w, int64_t j) {
  int64_t place = K;
  while (place > 0 && (weight[place - 1] < w || (weight[place - 1] == w && row[place - 1] > j))) --place;
  for (int64_t k = K - 1; k > place; --k) weight[k] = weight[k - 1], row[k] = row[k - 1];
  if (place < K) weight[place] = w, row[place] = j;
}

}  // namespace

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

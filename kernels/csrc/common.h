// Shared by all native ops. Letters: N tasks, M environments, D features, K slots.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#define EXPORT extern "C" __attribute__((visibility("default")))

// Exact: features lie on a 2^-24 grid, so products and partial sums of unit rows fit a double in any order.
static inline double exact_dot(const float* a, const float* b, int64_t D) {
  constexpr int64_t WIDE = 32;
  double lane[WIDE] = {};
  int64_t d = 0;
  for (; d + WIDE <= D; d += WIDE)
    for (int64_t l = 0; l < WIDE; ++l) {
#if defined(__FMA__)
      lane[l] = __builtin_fma(double(a[d + l]), double(b[d + l]), lane[l]);
#else
      lane[l] += double(a[d + l]) * double(b[d + l]);
#endif
    }
  double sum = 0;
  for (int64_t l = 0; l < WIDE; ++l) sum += lane[l];
  for (; d < D; ++d) sum += double(a[d]) * double(b[d]);
  return sum;
}

// What neighbours tell; its numbers stand in kernels/forecast.py, what it means in envsched/predict/priors.py.
enum Rule : int64_t { POOLED = 0, PAPER = 1, RESIDUAL = 2 };

static inline double clipped(double similarity) { return std::min(1.0, std::max(0.0, similarity)); }

// A neighbour candidate; better: more similar, then lower row.
struct Candidate {
  double similarity;
  int64_t row;
};
static inline bool better(const Candidate& a, const Candidate& b) {
  return a.similarity > b.similarity || (a.similarity == b.similarity && a.row < b.row);
}

// The error of a float32 inner product of D terms of unit rows, summed in any order.
static inline double float32_error(int64_t D) {
  const double unit = double(D + 1) / (1 << 24);
  return 1.01 * unit / (1 - unit);
}

// Put j into a list of K slots in order (weight descending, row ascending), if it belongs there.
static inline void enter(double* weight, int64_t* row, int64_t K, double w, int64_t j) {
  int64_t place = K;
  while (place > 0 && (weight[place - 1] < w || (weight[place - 1] == w && row[place - 1] > j))) --place;
  for (int64_t k = K - 1; k > place; --k) weight[k] = weight[k - 1], row[k] = row[k - 1];
  if (place < K) weight[place] = w, row[place] = j;
}

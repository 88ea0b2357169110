// Similarities of tasks, exact, and a float32 bound that rules most of them out.
#pragma once
#include "state.h"

// Where the features of one task lie.
struct Feature {
  const float *within = nullptr, *cross = nullptr;
};

struct Vectors {
  const float *within, *cross;  // [N, D_w], [N, D_c] of the rows held here
  int64_t within_features, cross_features;

  Feature of(int64_t place) const { return {within + place * within_features, cross + place * cross_features}; }

  double similarity(const Feature& a, const Feature& b, bool same) const {
    return same ? clipped(exact_dot(a.within, b.within, within_features)) : clipped(exact_dot(a.cross, b.cross, cross_features));
  }

  // Within `slack` of the exact one.
  float near_similarity(const Feature& a, const Feature& b, bool same) const {
    const float* x = same ? a.within : a.cross;
    const float* y = same ? b.within : b.cross;
    const int64_t D = same ? within_features : cross_features;
    constexpr int64_t WIDE = 64;
    float lane[WIDE] = {};
    int64_t d = 0;
    for (; d + WIDE <= D; d += WIDE)
      for (int64_t l = 0; l < WIDE; ++l) {
#if defined(__FMA__)
        lane[l] = __builtin_fmaf(x[d + l], y[d + l], lane[l]);
#else
        lane[l] += x[d + l] * y[d + l];
#endif
      }
    float rest = 0;
    for (; d < D; ++d) rest += x[d] * y[d];
    for (int64_t half = WIDE / 2; half; half /= 2)
      for (int64_t l = 0; l < half; ++l) lane[l] += lane[l + half];
    return std::min(1.f, std::max(0.f, lane[0] + rest));
  }

  double slack() const { return float32_error(std::max(within_features, cross_features)) + 1e-7; }
};

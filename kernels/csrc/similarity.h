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

constexpr int64_t LANES = 16;

struct alignas(LANES * sizeof(float)) Line {
  float lane[LANES];
};

// dot: float32 products of x [D] with the columns of lines [D]. The largest of them.
float products_with(const float* x, const Line* lines, int64_t D, Line& dot);

// The tasks of a batch, side by side so that a candidate meets LANES of them at once.
class Picked {
 public:
  explicit Picked(const Vectors& v) : v_(v) {}

  size_t size() const { return features_.size(); }
  const Feature& operator[](size_t j) const { return features_[j]; }

  void add(const Feature& feature, int64_t environment) {
    const size_t lane = features_.size() % LANES, D = v_.cross_features;
    if (lane == 0) lines_.resize(lines_.size() + D, Line{});
    Line* group = lines_.data() + lines_.size() - D;
    for (size_t d = 0; d < D; ++d) group[d].lane[lane] = feature.cross[d];
    features_.push_back(feature);
    environments_.push_back(environment);
    homes_[environment / 64 % HOMES] |= uint64_t(1) << environment % 64;
  }

  bool lives_with(size_t j, int64_t environment) const { return environments_[j] == environment; }

  // Within `slack` of the similarity to pick j.
  float near(const Feature& x, int64_t environment, size_t j) const { return v_.near_similarity(x, features_[j], lives_with(j, environment)); }

  // The largest of picks `first` and those after it in its group of LANES, and after the last of these.
  float nearest(const Feature& x, int64_t environment, size_t first, size_t& after) const {
    const size_t group = first / LANES, begin = group * LANES;
    after = std::min(features_.size(), begin + LANES);
    if (after - first == 1) return near(x, environment, first);
    Line dot;
    float most = products_with(x.cross, lines_.data() + group * v_.cross_features, v_.cross_features, dot);
    if (first == begin && !may_live_with(environment)) return std::min(1.f, std::max(0.f, most));
    most = 0;
    for (size_t j = first; j < after; ++j)
      most = std::max(most, lives_with(j, environment) ? near(x, environment, j) : std::min(1.f, dot.lane[j - begin]));
    return most;
  }

 private:
  bool may_live_with(int64_t environment) const { return homes_[environment / 64 % HOMES] >> environment % 64 & 1; }

  static constexpr int64_t HOMES = 64;
  uint64_t homes_[HOMES] = {};  // bit e % 4096: a pick lives in some such environment
  const Vectors& v_;
  std::vector<Feature> features_;
  std::vector<int64_t> environments_;
  std::vector<Line> lines_;  // [groups][D], 0 beyond the last pick
};

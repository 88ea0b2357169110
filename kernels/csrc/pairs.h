// Past predictions and what came of them: the isotonic map and the weight of the cross relation (METHOD section 7;
// envsched/predict/calibration.py and skill.py say what they are for).
//
// Letters: V pairs, u predicted and v realised variance, w weight 2^(p / h - base) of a pair.
#pragma once
#include "common.h"

#include <cmath>

struct Pairs {
  int64_t count;         // V
  double *u, *v, *w;     // [V] in the order of u
  int64_t first_step;    // whose pairs are left out, as all u are equal there; -1: none came yet
  int64_t num_cross;     // pairs for which the cross relation said something
  double base;
  double cross[3];       // sum w d r, sum w d^2, sum w: d what the cross relation said beyond the environment, r what came
  double half_life, start, full, full_cross, tolerance, max_variance;
  int64_t calibrates, min_distinct, weighs_cross;
  const double *knots, *values;  // [num_knots] a map that somebody else fitted, with its blend; null: it follows from the pairs
  int64_t num_knots;
  double blend;
};

struct Calibration {
  std::vector<double> knots, values;
  double blend = 0, max_variance = 0;

  // As numpy.interp, to the last bit.
  double operator()(double u) const {
    double mapped = u;
    if (blend > 0) {
      const size_t j = std::upper_bound(knots.begin(), knots.end(), u) - knots.begin();
      if (j == 0)
        mapped = values.front();
      else if (j == knots.size() || knots[j - 1] == u)
        mapped = values[j - 1];
      else
        mapped = (values[j] - values[j - 1]) / (knots[j] - knots[j - 1]) * (u - knots[j - 1]) + values[j - 1];
    }
    return std::min(max_variance, std::max(0.0, (1 - blend) * u + blend * mapped));
  }

  // About the lowest u that is mapped to the same score.
  double flat_from(double u) const {
    const double score = (*this)(u);
    const auto knot = std::lower_bound(knots.begin(), knots.end(), score, [&](double k, double wanted) { return (*this)(k) < wanted; });
    return knot == knots.end() ? u : std::min(u, *knot);
  }
};

int64_t isotonic(const double* u, const double* v, const double* w, int64_t count, double tolerance, double* knots, double* values);

inline Calibration calibration(const Pairs& p) {
  Calibration made;
  made.max_variance = p.max_variance;
  if (p.knots) {
    made.knots.assign(p.knots, p.knots + p.num_knots);
    made.values.assign(p.values, p.values + p.num_knots);
    made.blend = p.blend;
    return made;
  }
  made.blend = std::min(1.0, std::max(0.0, (double(p.count) - p.start) / (p.full - p.start)));
  if (made.blend == 0) return made;
  made.knots.resize(p.count);
  made.values.resize(p.count);
  const int64_t distinct = isotonic(p.u, p.v, p.w, p.count, p.tolerance, made.knots.data(), made.values.data());
  made.knots.resize(distinct);
  made.values.resize(distinct);
  if (distinct < p.min_distinct) made.blend = 0;
  return made;
}

// k_c; 1 for the rules that don't weigh the cross relation.
inline double cross_weight(const Pairs& p) {
  constexpr double NO_SPREAD = 1e-9;
  if (!p.weighs_cross) return 1;
  if (p.num_cross == 0 || p.cross[1] <= NO_SPREAD * NO_SPREAD * p.cross[2]) return 0;
  return std::min(1.0, std::max(0.0, p.cross[0] / p.cross[1])) * std::min(1.0, double(p.num_cross) / p.full_cross);
}

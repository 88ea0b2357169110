// One prediction of every task over lists of observed neighbours, in one pass: the sums over both relations, the graph prior, fusion
// and guard. The operations and their order are those of envsched/predict (priors.py, predictor.py), so the results are too, bit for
// bit; what the letters mean is said there.
#include "common.h"

#include <cmath>

namespace {

// One relation: source int64 [N, K] (-1: none, at the end) and weight float64 [N, K].
struct Lists {
  const int64_t* source;
  const double* weight;
  int64_t K;
};

// The settings, and what is summed over environments and pool; Python lays this out (kernels/forecast.py).
struct Forecast {
  int64_t N, M;
  const int64_t* offsets;                 // [M + 1]
  Lists within, cross;                    // K 0: a relation that is switched off
  const double *mass, *variance;  // [N] n, v
  const double *count, *value;    // [N] what a task counts for its neighbours, and that times what they hear of its v
  const double *short_mass, *short_value;
  const double *environment_count, *environment_value;  // [M] sums of count and of value
  double pool_count, pool_value;
  double shrinkage, own_shrinkage, decline_weight, prior_variance, max_variance, cross_weight;
  double residual_shrinkage, optimism, lift;  // of the residual prior; lift: kappa sd
  int64_t rule;                               // Rule
  double *u, *environment, *in_within, *within_mass, *in_cross, *cross_mass, *prior, *guard;  // [N] out
};

struct Given {
  double value, count;
};

struct Sums {
  double value = 0, mass = 0;
};

inline Sums gather(const Lists& lists, int64_t i, const Given* given) {
  Sums sums;
  for (int64_t k = i * lists.K, end = k + lists.K; k < end && lists.source[k] >= 0; ++k) {
    const Given& from = given[lists.source[k]];
    sums.value += lists.weight[k] * from.value;
    sums.mass += lists.weight[k] * from.count;
  }
  return sums;
}

inline double quotient(double total, double mass, double otherwise) { return mass > 0 ? total / mass : otherwise; }

constexpr double NO_MASS = 1e-9;  // what a subtraction leaves of nothing

// What the task's environment and the pool show; `envsched` leaves the task itself out.
inline void parents(const Forecast& f, int64_t e, const Given& own, double& environment, double& pool) {
  const double lambda = f.shrinkage;
  if (f.rule == PAPER) {
    pool = f.pool_count > 0 ? f.pool_value / f.pool_count : f.prior_variance;
    environment = (f.environment_value[e] + lambda * pool) / (f.environment_count[e] + lambda);
    return;
  }
  const double others = f.pool_count - own.count;
  pool = others > NO_MASS ? (f.pool_value - own.value) / others : f.prior_variance;
  environment = (f.environment_value[e] - own.value + lambda * pool) / (f.environment_count[e] - own.count + lambda);
}

inline double guard(const Forecast& f, int64_t i) {
  const double v = f.variance[i];
  if (!(v > 0)) return 1;
  const double recent = (f.short_value[i] + f.own_shrinkage * v) / (f.short_mass[i] + f.own_shrinkage);
  return 1 - f.decline_weight * std::min(1.0, std::max(0.0, (v - recent) / v));
}

// given: what a task tells its neighbours.
inline void predict(const Forecast& f, int64_t e, int64_t i, const Given* given) {
  const double lambda = f.shrinkage, k_c = f.cross_weight, n = f.mass[i], v = f.variance[i];
  double environment, pool, g, p_w, p_c;
  parents(f, e, {f.value[i], f.count[i]}, environment, pool);
  const Sums w = gather(f.within, i, given), c = gather(f.cross, i, given);
  if (f.rule == RESIDUAL) {
    const double r_w = w.value / (w.mass + f.residual_shrinkage), r_c = c.value / (c.mass + f.residual_shrinkage);
    p_w = environment + r_w;
    p_c = environment + r_c;
    g = (1 + f.optimism) * std::max(0.0, environment + r_w + r_c) + f.lift;
  } else if (f.rule == PAPER) {
    p_w = (w.value + lambda * environment) / (w.mass + lambda);
    p_c = (c.value + lambda * pool) / (c.mass + lambda);
    g = quotient(w.mass * p_w + c.mass * p_c, w.mass + c.mass, environment);
  } else {
    p_w = quotient(w.value, w.mass, environment);
    p_c = quotient(c.value, c.mass, environment);
    g = (lambda * environment + w.value + k_c * c.value) / (lambda + w.mass + k_c * c.mass);
  }
  f.environment[i] = environment;
  f.in_within[i] = p_w, f.within_mass[i] = w.mass;
  f.in_cross[i] = p_c, f.cross_mass[i] = c.mass;
  f.prior[i] = g;
  f.guard[i] = guard(f, i);
  const double fused = (n * v + f.own_shrinkage * g) / (n + f.own_shrinkage);
  f.u[i] = std::min(f.max_variance, std::max(0.0, fused)) * f.guard[i];
}

}  // namespace

EXPORT void envsched_forecast(const Forecast* forecast, int threads) {
  const Forecast& f = *forecast;
  std::vector<Given> given(f.N);
  for (int64_t e = 0; e < f.M; ++e)
    for (int64_t i = f.offsets[e]; i < f.offsets[e + 1]; ++i) {
      given[i] = {f.value[i], f.count[i]};
      if (f.rule != RESIDUAL || f.count[i] == 0) continue;
      double environment, pool;
      parents(f, e, given[i], environment, pool);
      given[i].value = f.count[i] * (f.variance[i] - environment);
    }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t e = 0; e < f.M; ++e)
    for (int64_t i = f.offsets[e]; i < f.offsets[e + 1]; ++i) predict(f, e, i, given.data());
}

// The maintained state of a large pool, as Python lays it out (kernels/native.py, State). Nothing here owns memory.
//
// Letters: N tasks, M environments, S visited tasks (slots), t step now, h half-life, e environment, lambda_g, lambda_s, k_c.
#pragma once
#include "common.h"

#include <cmath>

struct State {
  int64_t num_tasks, num_environments, num_slots;
  const int64_t* offsets;  // [M + 1] rows of each environment
  float* sums;             // [N][4] W_w, m_w, W_c, m_c of visited neighbours, times 2^(t / h - base)
  const float* peak;       // [N / 16 rounded up] upper bound of W_w + W_c in each block of 16 rows
  const int32_t* slot_of;  // [N] -1: never visited
  const uint8_t* masked;   // [N] or null
  // by slot; sums of visits as of policy version `stamp`
  const int32_t* order;       // [S] slots by ascending row: sums do not depend on who was visited first
  const int32_t* row;         // [S]
  const int32_t* environment; // [S]
  const double* mass;         // [S] sum w unit
  const double* value;        // [S] sum w unit v
  const double* groups;       // [S] sum w
  const double* short_mass;   // [S] with the short half-life
  const double* short_value;  // [S]
  const int32_t* stamp;       // [S]
  const double* exposure;     // [S] decayed exposures at this step
  // decay tables by age; beyond the end a weight is 0
  const double* decay;        // [A] 2^(-a / h)
  const double* short_decay;  // [A]
  int64_t num_ages;
  // by environment, written by envsched_refresh
  double* environment_mass;   // [M]
  double* environment_value;  // [M]
  double* environment_exposure;  // [M]
  int64_t step;
  double inverse_scale;  // 2^-(t / h - base): from inflated to true
  double graph_shrinkage, own_shrinkage, decline_weight, prior_variance, max_variance, cross_weight;
  int64_t paper;  // estimator: 1 paper, 0 envsched
  double pool_mass, pool_value;  // written by envsched_refresh
};

constexpr int64_t BLOCK_ROWS = 16;

struct Own {
  double mass, value, variance, c, short_mass, short_value;
};

struct Terms {
  double u, g, environment, within_mass, within, cross_mass, cross, guard;
};

inline double aged(const double* table, int64_t num_ages, int64_t age) { return age >= num_ages ? 0.0 : table[std::max<int64_t>(age, 0)]; }

inline Own own_of(const State& s, int64_t slot) {
  const int64_t age = s.step - s.stamp[slot];
  const double a = aged(s.decay, s.num_ages, age), b = aged(s.short_decay, s.num_ages, age);
  Own own;
  own.mass = s.mass[slot] * a;
  own.value = s.value[slot] * a;
  own.variance = own.mass > 0 ? own.value / own.mass : 0.0;
  own.c = s.paper ? own.mass : std::min(1.0, s.groups[slot] * a);
  own.short_mass = s.short_mass[slot] * b;
  own.short_value = s.short_value[slot] * b;
  return own;
}

// The prediction of one task in double precision, METHOD sections 5 and 6, or 12.
inline Terms evaluate(const State& s, int64_t row, int64_t e, int64_t slot) {
  const Own own = slot >= 0 ? own_of(s, slot) : Own{0, 0, 0, 0, 0, 0};
  const float* sum = s.sums + row * 4;
  const double d = s.inverse_scale, lambda = s.graph_shrinkage, k = s.cross_weight;
  const double W_w = sum[0] * d, m_w = sum[1] * d, W_c = sum[2] * d, m_c = sum[3] * d;
  Terms t;
  if (s.paper) {
    const double pool = s.pool_mass > 0 ? s.pool_value / s.pool_mass : s.prior_variance;
    t.environment = (s.environment_value[e] + lambda * pool) / (s.environment_mass[e] + lambda);
    t.within = (W_w + lambda * t.environment) / (m_w + lambda);
    t.cross = (W_c + lambda * pool) / (m_c + lambda);
    t.g = m_w + m_c > 0 ? (m_w * t.within + m_c * t.cross) / (m_w + m_c) : t.environment;
  } else {
    const double others = s.pool_mass - own.c;
    const double pool = others > 1e-9 ? (s.pool_value - own.c * own.variance) / others : s.prior_variance;
    t.environment = (s.environment_value[e] - own.c * own.variance + lambda * pool) / (s.environment_mass[e] - own.c + lambda);
    t.within = m_w > 0 ? W_w / m_w : t.environment;
    t.cross = m_c > 0 ? W_c / m_c : t.environment;
    t.g = (lambda * t.environment + W_w + k * W_c) / (lambda + m_w + k * m_c);
  }
  t.within_mass = m_w;
  t.cross_mass = m_c;
  const double fused = (own.mass * own.variance + s.own_shrinkage * t.g) / (own.mass + s.own_shrinkage);
  double decline = 0;
  if (own.variance > 0) {
    const double recent = (own.short_value + s.own_shrinkage * own.variance) / (own.short_mass + s.own_shrinkage);
    decline = std::min(1.0, std::max(0.0, (own.variance - recent) / own.variance));
  }
  t.guard = 1 - s.decline_weight * decline;
  t.u = std::min(s.max_variance, std::max(0.0, fused)) * t.guard;
  return t;
}

inline Terms evaluate(const State& s, int64_t row, int64_t e) { return evaluate(s, row, e, s.slot_of[row]); }

inline double exposure_of(const State& s, int64_t row) {
  const int64_t slot = s.slot_of[row];
  return slot < 0 ? 0.0 : s.exposure[slot];
}

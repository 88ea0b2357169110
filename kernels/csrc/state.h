// The maintained state of a large pool, as Python lays it out (kernels/state.py). Nothing here owns memory.
//
// Letters: N tasks, M environments, S visited tasks (slots), V visits, t step now, h half-life, e environment, lambda_g,
// lambda_s, lambda_r, k_c, R = W / (m + lambda_r).
//
// Under the residual prior nothing that is told fades: the scale stays 1, a told task counts 1, and W sums what tasks showed beyond
// their environments when they last told it.
//
// A pool may be sharded by environment over ranks: then this process holds the sums, lists and features of the rows of
// environments first_environment .. last_environment alone, `row - first_row` is a row's place in them, and the columns by slot
// and by environment are the same on every rank.
#pragma once
#include "common.h"

#include <cmath>

// All ranks' bytes, one after the other in the order of ranks; 0, or what went wrong. The answer lives until the next call.
using Exchange = int (*)(const void* mine, int64_t bytes, const uint8_t** all, int64_t* total);

struct State {
  int64_t num_tasks, num_environments;  // of the whole pool
  int64_t first_row, first_environment, last_environment;
  int64_t num_slots, num_visits, num_changed;
  const int64_t* offsets;  // [M + 1] rows of each environment
  float* sums;             // [N][4] W_w, m_w, W_c, m_c of visited neighbours, times 2^(t / h - base)
  float* peak;             // [N / 16 rounded up] upper bound of `height` in each block of 16 places
  int32_t* slot_of;        // [N] -1: never visited
  // by slot; sums of visits as of policy version `stamp`; own evidence: with its own half-lives
  int32_t* order;        // [S] slots by ascending row: sums do not depend on who was visited first
  int32_t* row;          // [S]
  int32_t* environment;  // [S]
  int32_t* stamp;        // [S]
  int32_t* exposed;      // [S] last step in which it was selected
  int32_t* streak;       // [S] steps in a row up to then
  int32_t* visits;       // [S]
  double* mass;          // [S] own: sum w unit
  double* value;         // [S] own: sum w unit v
  double* reward;        // [S] own: sum w unit m, m the mean reward on [0, 1]
  double* told_mass;     // [S] what others are told: sum w unit
  double* told_value;    // [S] sum w unit v
  double* groups;        // [S] sum w
  double* short_mass;    // [S] with the short half-life
  double* short_value;   // [S]
  double* exposure;      // [S] decayed exposures at this step
  double* headroom;      // [S] what a high mean leaves of its rank at this step
  double* given_mass;    // [S] what its listeners were given
  double* given_value;   // [S]
  // every visit, in order
  int32_t* visit_slot;  // [V]
  int32_t* visit_step;  // [V]
  int32_t* changed;     // slots whose contribution differs from what was given, ascending
  // decay tables by age; beyond the end a weight is 0
  const double* decay;        // [A] 2^(-a / h)
  const double* short_decay;  // [A]
  const double* own_decay;    // [A]
  int64_t num_ages;
  double* environment_mass;      // [M]
  double* environment_value;     // [M]
  double* environment_exposure;  // [M]
  int32_t* seat_of;              // [M] scratch of a batch, -1
  int64_t step;
  double base;           // of the scale 2^(t / h - base), a whole number
  double inverse_scale;  // 2^-(t / h - base): from inflated to true
  double threshold;      // of the last shortlist
  double half_life, short_half_life, own_half_life, visit_half_life;
  double graph_shrinkage, own_shrinkage, decline_weight, mastery_weight, prior_variance, max_variance, cross_weight;
  double residual_shrinkage, optimism, optimism_spread, lift;  // lift: optimism_spread times the spread over the pool
  double told_within;     // residual: a task tells again once what it shows has moved by more
  int64_t rule;           // Rule
  int64_t by_last_visit;  // a source gives only when it is visited; it counts the decayed weight of that visit, unless nothing fades
  int64_t threads;
  double pool_mass, pool_value;
  Exchange exchange;  // null: one process holds the whole pool
  const double* predicted;  // [N] u of every task where somebody else computed it; null: it follows from the sums

  bool fades() const { return rule != RESIDUAL; }
  double exponent(double at) const { return fades() ? at / half_life - base : 0; }  // of the scale of the sums
  int64_t place(int64_t row) const { return row - first_row; }
  bool holds(int64_t row) const { return row >= offsets[first_environment] && row < offsets[last_environment]; }
};

constexpr int64_t BLOCK_ROWS = 16;

// What the peak of a block bounds: W_w + W_c, or with residuals, whose shrinkage is above 0, R_w + R_c.
inline float height(const float* sum, float shrinkage) {
  return shrinkage > 0 ? sum[0] / (sum[1] + shrinkage) + sum[2] / (sum[3] + shrinkage) : sum[0] + sum[2];
}

// What a task knows of itself; c and `told`: what others are told, how much it counts and its variance.
struct Own {
  double mass, variance, level, c, told, short_mass, short_value;
};

struct Terms {
  double u, g, environment, within_mass, within, cross_mass, cross, guard, headroom;
};

inline double aged(const double* table, int64_t num_ages, int64_t age) { return age >= num_ages ? 0.0 : table[std::max<int64_t>(age, 0)]; }

inline Own own_of(const State& s, int64_t slot) {
  const int64_t age = s.step - s.stamp[slot];
  const double a = aged(s.decay, s.num_ages, age), b = aged(s.short_decay, s.num_ages, age), o = aged(s.own_decay, s.num_ages, age);
  Own own;
  own.mass = s.mass[slot] * o;
  own.variance = own.mass > 0 ? s.value[slot] / s.mass[slot] : 0.0;
  own.level = (s.reward[slot] * o + 0.5 * s.own_shrinkage) / (own.mass + s.own_shrinkage);
  if (s.rule == RESIDUAL) {  // what was seen once is told for good
    own.c = s.mass[slot] > 0;
    own.told = own.c > 0 ? s.value[slot] / s.mass[slot] : 0.0;
  } else {
    const double told_mass = s.told_mass[slot] * a;
    own.told = told_mass > 0 ? s.told_value[slot] / s.told_mass[slot] : 0.0;
    own.c = s.rule == PAPER ? told_mass : std::min(1.0, s.groups[slot] * a);
  }
  own.short_mass = s.short_mass[slot] * b;
  own.short_value = s.short_value[slot] * b;
  return own;
}

// What a task hears of the pool and of its environment, its own evidence left out (METHOD section 12; the paper leaves it in).
struct Parents {
  double pool, environment;
};

inline Parents parents(const State& s, double environment_mass, double environment_value, const Own& own) {
  const double lambda = s.graph_shrinkage;
  if (s.rule == PAPER) {
    const double pool = s.pool_mass > 0 ? s.pool_value / s.pool_mass : s.prior_variance;
    return {pool, (environment_value + lambda * pool) / (environment_mass + lambda)};
  }
  const double others = s.pool_mass - own.c;
  const double pool = others > 1e-9 ? (s.pool_value - own.c * own.told) / others : s.prior_variance;
  return {pool, (environment_value - own.c * own.told + lambda * pool) / (environment_mass - own.c + lambda)};
}

inline Parents parents(const State& s, int64_t e, const Own& own) { return parents(s, s.environment_mass[e], s.environment_value[e], own); }

inline double headroom(const State& s, const Own& own) { return std::exp(-s.mastery_weight * std::max(0.0, own.level - 0.5)); }

// g of the residual prior where environment and neighbours together say `heard`.
inline double hopeful(const State& s, double heard) { return (1 + s.optimism) * std::max(0.0, heard) + s.lift; }

// The prediction of one task in double precision, METHOD sections 5 and 6, or 12.
inline Terms evaluate(const State& s, int64_t row, const Own& own, const Parents& parent) {
  const float* sum = s.sums + s.place(row) * 4;
  const double d = s.inverse_scale, lambda = s.graph_shrinkage, k = s.cross_weight;
  const double W_w = sum[0] * d, m_w = sum[1] * d, W_c = sum[2] * d, m_c = sum[3] * d;
  Terms t;
  t.environment = parent.environment;
  if (s.rule == RESIDUAL) {
    const double R_w = W_w / (m_w + s.residual_shrinkage), R_c = W_c / (m_c + s.residual_shrinkage);
    t.within = t.environment + R_w;
    t.cross = t.environment + R_c;
    t.g = hopeful(s, t.environment + R_w + R_c);
  } else if (s.rule == PAPER) {
    t.within = (W_w + lambda * t.environment) / (m_w + lambda);
    t.cross = (W_c + lambda * parent.pool) / (m_c + lambda);
    t.g = m_w + m_c > 0 ? (m_w * t.within + m_c * t.cross) / (m_w + m_c) : t.environment;
  } else {
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
  t.headroom = headroom(s, own);
  t.u = std::min(s.max_variance, std::max(0.0, fused)) * t.guard;
  return t;
}

constexpr Own UNSEEN{0, 0, 0.5, 0, 0, 0, 0};

inline Terms evaluate(const State& s, int64_t row, int64_t e, int64_t slot) {
  const Own own = slot >= 0 ? own_of(s, slot) : UNSEEN;
  return evaluate(s, row, own, parents(s, e, own));
}

inline double headroom(const State& s, int64_t slot) { return slot < 0 ? 1.0 : s.headroom[slot]; }

// u of a task that is held here.
inline double predicted(const State& s, int64_t row, int64_t e, int64_t slot) {
  return s.predicted ? s.predicted[s.place(row)] : evaluate(s, row, e, slot).u;
}

// The slot of any row, held here or not; -1: never visited.
inline int64_t slot_of(const State& s, int64_t row) {
  if (s.holds(row)) return s.slot_of[s.place(row)];
  const int32_t* end = s.order + s.num_slots;
  const int32_t* at = std::lower_bound<const int32_t*>(s.order, end, row, [&](int32_t slot, int64_t wanted) { return s.row[slot] < wanted; });
  return at != end && s.row[*at] == row ? *at : -1;
}

inline int64_t environment_of(const State& s, int64_t row) {
  return std::upper_bound(s.offsets, s.offsets + s.num_environments + 1, row) - s.offsets - 1;
}

// What went wrong inside a native step; Python says more.
enum Outcome : int64_t { DONE = 0, GENERAL = 1, EXCHANGE_FAILED = -1, ROW_TWICE = -2 };

// All ranks' items, in the order of ranks; just these where one process holds the pool.
template <class Item>
inline bool gather_items(const State& s, std::vector<Item>& items) {
  if (!s.exchange) return true;
  const uint8_t* all;
  int64_t total;
  if (s.exchange(items.data(), int64_t(items.size() * sizeof(Item)), &all, &total)) return false;
  items.resize(total / sizeof(Item));
  if (total) std::memcpy(items.data(), all, total);
  return true;
}

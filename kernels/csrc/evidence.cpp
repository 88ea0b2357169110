// Own evidence of visited tasks: a visit taken in, and everything brought to a step.
#include "pairs.h"
#include "state.h"

namespace {

constexpr double REBASE = 32;         // scale exponent at which the sums are scaled down
constexpr double MAX_HALF_LIVES = 900;  // after which nothing is left (envsched/history/statistics.py)
constexpr double PAIRS_REBASE = 512;  // the same of the pairs' weights

// Sum over visits in their order, as `decayed_exposures` does, to the last bit: environments that tie there must tie here.
void expose(State& s) {
  std::fill(s.exposure, s.exposure + s.num_slots, 0.0);
  for (int64_t i = 0; i < s.num_visits; ++i) s.exposure[s.visit_slot[i]] += aged(s.decay, s.num_ages, s.step - s.visit_step[i]);
}

// Scale by an exact power of two; its exponent is a multiple of 4, so that fourth roots (csrc/live.cpp) scale exactly too.
int64_t rebase(State& s) {
  const double exponent = s.exponent(s.step);
  if (!(exponent > REBASE)) return 0;
  const int64_t shift = 4 * int64_t(exponent / 4), rows = s.offsets[s.last_environment] - s.offsets[s.first_environment];
  const double factor = std::exp2(-double(shift));
  s.base += double(shift);
  for (int64_t i = 0; i < rows * 4; ++i) s.sums[i] *= float(factor);
  for (int64_t i = 0; i < (rows + BLOCK_ROWS - 1) / BLOCK_ROWS; ++i) s.peak[i] *= float(factor);
  for (int64_t slot = 0; slot < s.num_slots; ++slot) s.given_mass[slot] *= factor, s.given_value[slot] *= factor;
  return shift;
}

// Masses and values of environments and pool from the visited tasks, in the order of their rows, and the pool's spread.
void refresh(State& s) {
  for (int64_t slot = 0; slot < s.num_slots; ++slot) {
    const int64_t e = s.environment[slot];
    s.environment_mass[e] = s.environment_value[e] = s.environment_exposure[e] = 0;
  }
  s.pool_mass = s.pool_value = 0;
  double squares = 0;
  for (int64_t place = 0; place < s.num_slots; ++place) {
    const int64_t slot = s.order[place], e = s.environment[slot];
    const Own own = own_of(s, slot);
    s.environment_mass[e] += own.c;
    s.environment_value[e] += own.c * own.told;
    s.environment_exposure[e] += s.exposure[slot];
    s.headroom[slot] = headroom(s, own);
    s.pool_mass += own.c;
    s.pool_value += own.c * own.told;
    squares += own.c * own.told * own.told;
  }
  const double mean = s.pool_mass > 0 ? s.pool_value / s.pool_mass : 0;
  s.lift = s.rule == RESIDUAL && s.pool_mass > 0 ? s.optimism_spread * std::sqrt(std::max(0.0, squares / s.pool_mass - mean * mean)) : 0;
}

// One visit, and what is predicted of its task by whoever holds its sums.
struct Visit {
  int64_t row, version, num_valid;
  double mean, variance, u, environment, cross;
};

// Pairs of one step; visits by ascending row.
void add_pairs(Pairs& p, int64_t step, const std::vector<Visit>& visits) {
  const double exponent = step / p.half_life - p.base;
  if (exponent > PAIRS_REBASE) {
    const double shift = PAIRS_REBASE * std::floor(exponent / PAIRS_REBASE), factor = std::exp2(-shift);  // a short half-life passes many at once
    const double least = std::exp2(exponent - shift - MAX_HALF_LIVES);
    int64_t alive = 0;
    for (int64_t i = 0; i < p.count; ++i)
      if (const double w = p.w[i] * factor; w > least) p.u[alive] = p.u[i], p.v[alive] = p.v[i], p.w[alive++] = w;
    p.count = alive;
    for (double& sum : p.cross) sum *= factor;
    p.base += shift;
  }
  std::vector<const Visit*> known;
  for (const Visit& visit : visits)
    if (!std::isnan(visit.variance)) known.push_back(&visit);
  auto weight = [&](const Visit& visit) { return std::exp2(visit.version / p.half_life - p.base); };
  if (step >= 1)
    for (const Visit* visit : known) {
      if (std::isnan(visit->cross)) continue;
      const double d = visit->cross - visit->environment, r = visit->variance - visit->environment, w = weight(*visit);
      p.cross[0] += w * (d * r);
      p.cross[1] += w * (d * d);
      p.cross[2] += w;
      ++p.num_cross;
    }
  if (p.first_step < 0) {
    p.first_step = step;
    return;
  }
  if (!p.calibrates) return;
  std::stable_sort(known.begin(), known.end(), [](const Visit* a, const Visit* b) { return a->u < b->u; });
  int64_t from = p.count - 1, to = p.count + int64_t(known.size()) - 1;
  p.count += int64_t(known.size());
  for (int64_t next = int64_t(known.size()) - 1; next >= 0; --to) {  // merged from the back; equal u: the older first
    if (from >= 0 && p.u[from] > known[next]->u) {
      p.u[to] = p.u[from], p.v[to] = p.v[from], p.w[to] = p.w[from];
      --from;
    } else {
      p.u[to] = known[next]->u, p.v[to] = known[next]->variance, p.w[to] = weight(*known[next]);
      --next;
    }
  }
}

// Slots for rows that have none, in ascending order of row.
void make_slots(State& s, const std::vector<Visit>& visits, std::vector<int64_t>& slot) {
  const int64_t before = s.num_slots;
  for (const Visit& visit : visits) slot.push_back(slot_of(s, visit.row));
  for (size_t i = 0; i < visits.size(); ++i) {
    if (slot[i] >= 0) continue;
    const int64_t row = visits[i].row, fresh = slot[i] = s.num_slots++;
    if (s.holds(row)) s.slot_of[s.place(row)] = int32_t(fresh);
    s.row[fresh] = int32_t(row);
    s.environment[fresh] = int32_t(environment_of(s, row));
    s.stamp[fresh] = s.exposed[fresh] = s.streak[fresh] = s.visits[fresh] = 0;
    for (double* column : {s.mass, s.value, s.reward, s.told_mass, s.told_value, s.groups, s.short_mass, s.short_value, s.exposure, s.headroom, s.given_mass, s.given_value}) column[fresh] = 0;
  }
  for (int64_t fresh = before; fresh < s.num_slots; ++fresh) s.order[fresh] = int32_t(fresh);
  std::inplace_merge(s.order, s.order + before, s.order + s.num_slots, [&](int32_t a, int32_t b) { return s.row[a] < s.row[b]; });
}

void take_visit(State& s, int64_t slot, int64_t step, const Visit& visit) {
  s.streak[slot] = s.visits[slot] > 0 && s.exposed[slot] == step - 1 ? s.streak[slot] + 1 : 1;
  s.exposed[slot] = int32_t(step);
  ++s.visits[slot];
  s.visit_slot[s.num_visits] = int32_t(slot);
  s.visit_step[s.num_visits++] = int32_t(step);
  if (std::isnan(visit.variance)) return;
  if (s.mass[slot] == 0) s.stamp[slot] = int32_t(visit.version);
  const int64_t later = std::max<int64_t>(visit.version, s.stamp[slot]);
  const double old = double(later - s.stamp[slot]), age = double(later - visit.version), unit = s.rule == PAPER ? 1.0 : double(visit.num_valid);
  auto add = [&](double* mass, double* value, double half_life, double visit_half_life) {
    const double fade = std::exp2(-old / half_life - 1 / visit_half_life), w = std::exp2(-age / half_life) * unit;
    mass[slot] = mass[slot] * fade + w;
    value[slot] = value[slot] * fade + w * visit.variance;
    return std::pair(fade, w);
  };
  const auto [fade, w] = add(s.mass, s.value, s.own_half_life, s.visit_half_life);
  s.reward[slot] = s.reward[slot] * fade + w * visit.mean;
  add(s.told_mass, s.told_value, s.half_life, INFINITY);
  add(s.short_mass, s.short_value, s.short_half_life, INFINITY);
  s.groups[slot] = s.groups[slot] * std::exp2(-old / s.half_life) + std::exp2(-age / s.half_life);
  s.stamp[slot] = int32_t(later);
  int32_t* end = s.changed + s.num_changed;
  int32_t* at = std::lower_bound(s.changed, end, int32_t(slot));
  if (at != end && *at == slot) return;
  std::copy_backward(at, end, end + 1);
  *at = int32_t(slot);
  ++s.num_changed;
}

}  // namespace

// What changed sources count now, on the scale of the sums, as Python lays it out; room for all that changed.
struct Gifts {
  int64_t count;
  int64_t *source, *slot, *start, *stop;  // rows; start .. stop: of their own environment
  double *mass, *value;
  double *more_mass, *more_value;  // than the last gift of the same task
};

namespace {

void give(State& s, int64_t slot, double mass, double value, Gifts& gifts) {
  const int64_t i = gifts.count++, e = s.environment[slot];
  gifts.source[i] = s.row[slot];
  gifts.slot[i] = slot;
  gifts.start[i] = s.offsets[e];
  gifts.stop[i] = s.offsets[e + 1];
  gifts.mass[i] = mass;
  gifts.value[i] = value;
  gifts.more_mass[i] = mass - s.given_mass[slot];
  gifts.more_value[i] = value - s.given_value[slot];
  s.given_mass[slot] = mass;
  s.given_value[slot] = value;
}

// For `pooled` a source counts min(1, groups): while its groups exceed 1 it changes again at each step.
void give_evidence(State& s, Gifts& gifts) {
  const double one = std::exp2(s.exponent(s.step));
  const int64_t count = s.num_changed;
  s.num_changed = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t slot = s.changed[i];
    const double lift = std::exp2(s.exponent(s.stamp[slot])), groups = s.groups[slot] * lift;
    double mass = s.told_mass[slot] * lift, value = s.told_value[slot] * lift;
    if (s.rule == POOLED) {
      mass = s.by_last_visit ? lift : std::min(groups, one);
      value = mass * s.told_value[slot] / s.told_mass[slot];
      if (!s.by_last_visit && groups > one) s.changed[s.num_changed++] = int32_t(slot);
    }
    give(s, slot, mass, value, gifts);
  }
}

// What a task shows beyond its environment moves when others of it, or of the pool, are visited: where a gift costs a pass over
// the pool it is told at the task's own visits alone, else whenever it has moved.
void give_residuals(State& s, Gifts& gifts) {
  auto residual = [&s](int64_t slot) {
    const Own own = own_of(s, slot);
    return own.told - parents(s, s.environment[slot], own).environment;
  };
  if (s.by_last_visit)
    for (int64_t i = 0; i < s.num_changed; ++i) give(s, s.changed[i], 1, residual(s.changed[i]), gifts);
  else
    for (int64_t slot = 0; slot < s.num_slots; ++slot) {
      if (s.mass[slot] == 0) continue;
      const double r = residual(slot);
      if (s.given_mass[slot] == 0 || std::fabs(r - s.given_value[slot]) > s.told_within) give(s, slot, 1, r, gifts);
    }
  s.num_changed = 0;
}

}  // namespace

// Bring everything to a step but the sums: what is to be given to neighbours, with room for all visited tasks. The exponent by
// which the scale of the sums shrank comes back.
EXPORT int64_t envsched_age(State* s, const Pairs* pairs, int64_t step, Gifts* gifts) {
  s->step = step;
  expose(*s);
  const int64_t shift = rebase(*s);
  s->inverse_scale = std::exp2(-s->exponent(step));
  s->cross_weight = cross_weight(*pairs);
  refresh(*s);
  gifts->count = 0;
  s->rule == RESIDUAL ? give_residuals(*s, *gifts) : give_evidence(*s, *gifts);
  return shift;
}

EXPORT double envsched_cross_weight(const Pairs* pairs) { return cross_weight(*pairs); }

// Take in the visits [count] of one step (mean: of the rewards on [0, 1]), which the pool stands at; on several ranks each gives those it made. Columns by slot,
// visits and pairs have room for them. The number of visits of all ranks, or an Outcome below 0.
EXPORT int64_t envsched_observe(State* s, Pairs* pairs, int64_t step, const int64_t* row, const int64_t* version, const int64_t* num_valid,
                                const double* mean, const double* variance, int64_t count) {
  std::vector<Visit> visits(count);
  for (int64_t i = 0; i < count; ++i) visits[i] = {row[i], version[i], num_valid[i], mean[i], variance[i], 0, 0, 0};
  if (!gather_items(*s, visits)) return EXCHANGE_FAILED;
  std::sort(visits.begin(), visits.end(), [](const Visit& a, const Visit& b) { return a.row < b.row; });
  for (size_t i = 1; i < visits.size(); ++i)
    if (visits[i].row == visits[i - 1].row) return ROW_TWICE;
  std::vector<Visit> mine;
  for (Visit& visit : visits) {
    if (!s->holds(visit.row)) continue;
    const Terms t = evaluate(*s, visit.row, environment_of(*s, visit.row), s->slot_of[s->place(visit.row)]);
    visit.u = t.u;
    visit.environment = t.environment;
    visit.cross = t.cross_mass > 0 ? t.cross : NAN;
    mine.push_back(visit);
  }
  if (s->exchange) {
    if (!gather_items(*s, mine)) return EXCHANGE_FAILED;
    visits = mine;  // ranks hold ascending rows
  }
  add_pairs(*pairs, step, visits);
  std::vector<int64_t> slot;
  make_slots(*s, visits, slot);
  for (size_t i = 0; i < visits.size(); ++i) take_visit(*s, slot[i], step, visits[i]);
  return int64_t(visits.size());
}

// Terms of single tasks held here: out float64 [count, 9] in the order of struct Terms.
EXPORT void envsched_evaluate(const State* s, const int64_t* row, const int64_t* environment, int64_t count, double* out) {
  for (int64_t i = 0; i < count; ++i) {
    const Terms t = evaluate(*s, row[i], environment[i], slot_of(*s, row[i]));
    const double values[9] = {t.u, t.g, t.environment, t.within_mass, t.within, t.cross_mass, t.cross, t.guard, t.headroom};
    std::copy(values, values + 9, out + i * 9);
  }
}

// u of every task held here, float64.
EXPORT void envsched_predict(const State* s, double* u, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t e = s->first_environment; e < s->last_environment; ++e)
    for (int64_t row = s->offsets[e]; row < s->offsets[e + 1]; ++row) u[s->place(row)] = evaluate(*s, row, e, s->slot_of[s->place(row)]).u;
}

// Slots of rows [count], -1 where never visited.
EXPORT void envsched_slots(const State* s, const int64_t* row, int64_t count, int64_t* slot) {
  for (int64_t i = 0; i < count; ++i) slot[i] = slot_of(*s, row[i]);
}

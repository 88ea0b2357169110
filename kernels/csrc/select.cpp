// One batch of a large pool: coverage, then greedy exploitation over a shortlist that grows until every pick is certain.
// The rules are those of envsched/select; what they are for is said there.
#include "cover.h"
#include "greedy.h"
#include "pairs.h"
#include "score.h"

namespace {

// Settings of a pool's batches, as Python lays them out (kernels/state.py).
struct Rules {
  Quotas quotas;
  int64_t batch_size, num_coverage;
  double penalty, explore, exposure_scale;
  int64_t discount_decays;
  uint64_t seed;
  const int64_t* size_count;  // [num_sizes], see Ledger
  int64_t num_sizes;
  Vectors vectors;
  int64_t shortlist;   // wanted candidates; more while picks can't be certified
  int64_t capacity;    // most candidates looked at
  int64_t exhaustive;  // so many are looked at before a tie is left open
  double flat;         // the calibration is flat where this share of u has the same score
};

// More tasks than can be looked at share one u: all above it, and of the tied one of each environment.
bool tied(const State& s, const Rules& r, double low, double high, int64_t size, std::vector<Found>& out) {
  struct Drawn {
    uint64_t word;
    Found task;
  };
  Scored above;
  if (!score(s, high, r.capacity, above)) return false;
  const Words words{{r.seed, uint64_t(s.step)}, 1};
  std::vector<Drawn> drawn;
  for (int64_t e = s.first_environment; e < s.last_environment; ++e) {
    const int64_t tasks = s.offsets[e + 1] - s.offsets[e];
    if (!tasks) continue;
    const uint64_t word = words[e];
    const int64_t row = s.offsets[e] + int64_t(word % uint64_t(tasks));
    const int32_t slot = s.slot_of[s.place(row)];
    const double u = predicted(s, row, e, slot);
    if (u >= low && u < high) drawn.push_back({word, {row, int32_t(e), slot, u}});
  }
  auto keep_first = [&] {
    std::sort(drawn.begin(), drawn.end(), [](const Drawn& a, const Drawn& b) { return a.word != b.word ? a.word < b.word : a.task.row < b.task.row; });
    if (int64_t(drawn.size()) > std::max(size, r.shortlist)) drawn.resize(std::max(size, r.shortlist));
  };
  keep_first();
  if (!gather_items(s, drawn)) return false;
  keep_first();
  out = std::move(above.tasks);
  for (const Drawn& one : drawn) out.push_back(one.task);
  return true;
}

// The candidates of a lane by falling u, as many as it takes: one pass over the pool serves all sizes up to what it found.
class Shortlist {
 public:
  Shortlist(State& s, const Rules& r) : s_(s), r_(r) {}

  double ceiling() const { return ceiling_; }  // all others lie below
  bool last() const { return last_; }          // there can be no more

  // The `size` best and all that tie with the last of them, as far as they were not given before: what is looked at does not
  // depend on the steps before.
  bool grow(int64_t size, std::vector<Found>& fresh) {
    fresh.clear();
    if (above_ < size && !complete_ && !pass(size)) return false;
    last_ = complete_ && size >= above_;
    if (last_) {
      ceiling_ = from_;
    } else if (size > given_) {
      ceiling_ = reached_by(size, given_);
    }
    const auto rest = found_.begin() + given_;
    const auto stop = std::partition(rest, found_.end(), [&](const Found& task) { return last_ || task.u >= ceiling_; });
    fresh.assign(rest, stop);
    given_ = stop - found_.begin();
    return true;
  }

  // How many reach u, one step of a pass where that is not known; more than can be looked at: `capacity` + 1.
  bool count(double u, int64_t& number) {
    if (u < from_ && !complete_) {
      Scored found;
      if (!score(s_, u, r_.capacity, found)) return false;
      number = found.count;
      if (number > r_.capacity) return true;
      s_.threshold = u;
      keep(found.tasks, u, u <= 0);
    }
    number = std::count_if(found_.begin(), found_.end(), [&](const Found& task) { return task.u >= u; });
    return true;
  }

  // The next step begins with a pass for about what this one took: scores drift slowly.
  void remember() {
    const int64_t wanted = given_ + given_ / 2;
    if (wanted >= above_) return;
    s_.threshold = reached_by(wanted, given_);
  }

 private:
  // At least `size` candidates, or all that can be looked at.
  bool pass(int64_t size) {
    double low = -1, high = s_.max_variance + 1;  // too many candidates at low, too few at high
    if (above_) high = from_, s_.threshold = further(size);
    while (high - low > 1e-9 * s_.max_variance) {
      const double threshold = s_.threshold;
      double guess;
      Scored found;
      if (!score(s_, threshold, r_.capacity, found)) return false;
      if (found.count > r_.capacity) {
        low = threshold;
        guess = found.reached_by(2 * size);
      } else if (found.count < size && threshold > 0) {
        high = threshold;
        guess = low < 0 ? 0.9 * threshold : (low + high) / 2;
      } else {
        keep(found.tasks, threshold, threshold <= 0 || size >= r_.capacity);
        return true;
      }
      s_.threshold = low < guess && guess < high && guess > 1e-12 ? guess : std::max(0.0, (low + high) / 2);
    }
    std::vector<Found> tasks;
    if (!tied(s_, r_, low, high, size, tasks)) return false;
    keep(tasks, high, true);
    return true;
  }

  // A threshold below from_ that about `size` reach, if candidates lie there as densely as in the lower half of those known.
  double further(int64_t size) {
    const int64_t half = std::max<int64_t>(1, above_ / 2);
    const double depth = (reached_by(half, 0) - from_) * double(size + size / 4 - above_) / double(above_ - half + 1);
    return std::max(0.9 * from_, std::min(from_ * (1 - 1e-6), from_ - depth));
  }

  // The u that `rank` of the known reach; the first `settled` of them are the best ones already.
  double reached_by(int64_t rank, int64_t settled) {
    const auto at = found_.begin() + (rank - 1);
    std::nth_element(found_.begin() + settled, at, found_.end(), [](const Found& a, const Found& b) { return a.u > b.u; });
    return at->u;
  }

  void keep(std::vector<Found>& tasks, double from, bool complete) {
    found_ = std::move(tasks);
    from_ = from, complete_ = complete;
    above_ = std::count_if(found_.begin(), found_.end(), [&](const Found& task) { return task.u >= from; });
    const auto given = std::partition(found_.begin(), found_.end(), [&](const Found& task) { return given_ && task.u >= ceiling_; });
    given_ = given - found_.begin();
  }

  State& s_;
  const Rules& r_;
  std::vector<Found> found_;  // the given ones first; all with u >= from_, and some of those that tie below it where there are too many
  int64_t given_ = 0, above_ = 0;
  double from_ = INFINITY, ceiling_ = INFINITY;
  bool complete_ = false, last_ = false;
};

// Features of candidates and picks: where they lie, or copies where other ranks hold them.
class Features {
 public:
  Features(const State& s, const Vectors& v) : s_(s), v_(v) {}

  bool fetch(const std::vector<int64_t>& rows, const std::vector<int64_t>& environments, std::vector<Feature>& out) {
    out.clear();
    if (!s_.exchange) {
      for (const int64_t row : rows) out.push_back(v_.of(s_.place(row)));
      return true;
    }
    const int64_t width = v_.cross_features + v_.within_features;
    std::vector<float> copies;
    std::vector<std::pair<int64_t, int64_t>> held;  // rank order is row order: rows of this rank in it
    for (size_t i = 0; i < rows.size(); ++i)
      if (s_.holds(rows[i])) held.push_back({rows[i], environments[i]});
    std::sort(held.begin(), held.end());
    for (const auto& [row, e] : held) {
      const Feature feature = v_.of(s_.place(row));
      copies.insert(copies.end(), feature.cross, feature.cross + v_.cross_features);
      copies.insert(copies.end(), feature.within, feature.within + v_.within_features);
    }
    if (!gather_items(s_, copies)) return false;
    kept_.push_back(std::move(copies));
    std::vector<int64_t> sorted = rows;
    std::sort(sorted.begin(), sorted.end());
    for (const int64_t row : rows) {
      const float* at = kept_.back().data() + (std::lower_bound(sorted.begin(), sorted.end(), row) - sorted.begin()) * width;
      out.push_back({at + v_.cross_features, at});
    }
    return true;
  }

 private:
  const State& s_;
  const Vectors& v_;
  std::vector<std::vector<float>> kept_;
};

constexpr int64_t BEYOND_FLAT = 128;  // so many more than share a score are looked at: the next score is clearly less
constexpr double AFTER_ALL_OTHERS = 2;  // the worth of any task lies in [-penalty, 1]

double discount(const State& s, const Rules& r, int64_t slot) {
  const double seen = slot < 0 ? 0.0 : r.discount_decays ? s.exposure[slot] : double(s.visits[slot]);
  return r.exposure_scale / (r.exposure_scale + seen) * headroom(s, slot);
}

// Where the calibration is flat around the shortlist's end, more than can be looked at tie: growing would not lower what lies
// outside, and the rest of the lane is taken from the best u, with the gap reported.
Outcome exploit(State& s, const Rules& r, const Closed& closed, const Pairs& pairs, Ledger& ledger, int64_t* rows, double* penalty, double& gap) {
  const Calibration map = calibration(pairs);
  auto scored = [&](double u) { return map(u) / map.max_variance; };
  Features features(s, r.vectors);
  std::vector<Feature> feature;
  if (!features.fetch(ledger.rows, ledger.environments, feature)) return EXCHANGE_FAILED;
  Greedy greedy(r.vectors, ledger, r.penalty);
  for (const Feature& one : feature) greedy.know(one);
  Shortlist shortlist(s, r);
  std::vector<Found> found;
  double plateau = INFINITY;  // tasks on the one that the last ones ended on have its score
  for (int64_t size = r.shortlist, wanted = r.batch_size - int64_t(ledger.rows.size()); wanted;) {
    const double high = shortlist.ceiling(), shared = scored(high);
    if (!shortlist.grow(size, found)) return EXCHANGE_FAILED;
    std::vector<int64_t> row, environment;
    std::vector<Contender> fresh;
    for (const Found& task : found) {
      const bool barred = closed.barred && closed.barred[task.row];
      const double bound = (task.u >= plateau && task.u <= high ? shared : scored(task.u)) * discount(s, r, task.slot);
      fresh.push_back({task.row, task.environment, barred ? bound - AFTER_ALL_OTHERS * (1 + r.penalty) : bound, task.u, {}});
      row.push_back(task.row);
      environment.push_back(task.environment);
    }
    if (!features.fetch(row, environment, feature)) return EXCHANGE_FAILED;
    for (size_t i = 0; i < fresh.size(); ++i) fresh[i].feature = feature[i];
    greedy.add(fresh);
    const double ceiling = shortlist.ceiling(), outside = ceiling > 0 ? scored(ceiling) : -INFINITY;
    const bool is_tied = ceiling > 0 && outside == scored(r.flat * ceiling) && size >= r.exhaustive;
    for (int forced = shortlist.last(); forced <= int(shortlist.last() || is_tied) && wanted; ++forced) {
      const int64_t count = greedy.run(outside, wanted, forced, gap, rows, penalty);
      for (int64_t i = 0; i < count; ++i) penalty[i] *= r.penalty;
      rows += count, penalty += count, wanted -= count;
    }
    if (!wanted) break;
    if (shortlist.last() && size > s.num_tasks) return GENERAL;  // tied tasks alone can't fill the lane
    // Where many share the best score outside, none of them is certain before all are known.
    int64_t next = 2 * size;
    plateau = ceiling > 0 ? map.flat_from(ceiling) : ceiling;
    if (plateau > 0 && plateau < ceiling) {
      int64_t sharing;
      if (!shortlist.count(plateau, sharing)) return EXCHANGE_FAILED;
      if (sharing + BEYOND_FLAT <= r.exhaustive) next = std::max(size, sharing) + BEYOND_FLAT;
    }
    size = next;
  }
  shortlist.remember();
  // Where tasks are left that were not looked at, an open one may be among them.
  if (closed.barred && s.num_tasks > r.capacity)
    for (size_t i = size_t(r.num_coverage); i < ledger.rows.size(); ++i)
      if (closed.barred[ledger.rows[i]]) return GENERAL;
  return DONE;
}

}  // namespace

// The batch of s.step without the tasks that are closed: rows, penalty (0 for the first num_coverage) and bound_by, `Shut` bits of
// what shut out tasks that ranked before; gap > 0: by so much a pick may have lost.
// GENERAL: no visit yet, or quotas that must be relaxed: Python composes such batches. Outcomes below 0: what went wrong.
EXPORT int64_t envsched_select(State* s, const Pairs* pairs, const Rules* r, const Closed* closed, int64_t* rows, double* penalty,
                               uint32_t* bound_by, double* gap) {
  *gap = 0;
  if (!s->num_slots) return GENERAL;
  Ledger ledger(*s, r->quotas, *closed, r->size_count, r->num_sizes, s->step, r->batch_size);
  if (ledger.capacity() < r->batch_size) return GENERAL;
  const Words words{{r->seed, uint64_t(s->step)}};
  std::vector<bool> explores(r->num_coverage);
  for (int64_t i = 0; i < r->num_coverage; ++i) explores[i] = double(words[s->num_environments + i] >> 11) * 0x1p-53 < r->explore;
  const std::vector<int64_t> order = first_environments(*s, words, std::min(s->num_environments, 2 * r->num_coverage + ledger.num_narrowed()));
  if (!cover(*s, r->vectors, ledger, order, explores)) return EXCHANGE_FAILED;
  if (int64_t(ledger.rows.size()) < r->num_coverage) return GENERAL;
  std::copy(ledger.rows.begin(), ledger.rows.end(), rows);
  std::fill(penalty, penalty + r->num_coverage, 0.0);
  const Outcome outcome = exploit(*s, *r, *closed, *pairs, ledger, rows + r->num_coverage, penalty + r->num_coverage, *gap);
  if (outcome == DONE) std::copy(ledger.bound_by.begin(), ledger.bound_by.end(), bound_by);
  return outcome;
}

// A greedy fill by itself, for benchmarks of it: candidates [count] with their bounds, in the order of falling bounds; `sizes`
// [steps] are shortlists to try, each with its ceiling. The number of inner products; `used`: the last shortlist looked at.
EXPORT int64_t envsched_greedy(const State* s, const Rules* r, const int64_t* row, const double* bound, const int64_t* size,
                               const double* ceiling, int64_t steps, int64_t* rows, int64_t* used) {
  Ledger ledger(*s, r->quotas, Closed{}, r->size_count, r->num_sizes, s->step, r->batch_size);
  Greedy greedy(r->vectors, ledger, r->penalty);
  std::vector<double> closeness(r->batch_size);
  double gap = 0;
  int64_t made = 0, known = 0;
  for (int64_t i = 0; i < steps && made < r->batch_size; ++i) {
    std::vector<Contender> fresh;
    for (; known < size[i]; ++known)
      fresh.push_back({row[known], environment_of(*s, row[known]), bound[known], bound[known], r->vectors.of(s->place(row[known]))});
    greedy.add(fresh);
    *used = size[i];
    made += greedy.run(ceiling[i], r->batch_size - made, false, gap, rows + made, closeness.data());
  }
  return greedy.products;
}

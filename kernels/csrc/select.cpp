// One batch: the coverage lane, then lazy greedy exploitation with a certificate, under quotas that look one step ahead.
// The rules are those of envsched/select; what they are for is said there.
#include "state.h"

#include <queue>

namespace {

struct Quotas {
  int64_t max_consecutive, max_window, max_per_environment, window_steps;
};

// The picks an environment can still give now and at the next step.
struct Seats {
  int32_t left, plain, resting, next_slots, next_tasks, next, free, count;
};

class Ledger {
 public:
  Ledger(const State& s, const Quotas& q, const int32_t* window, const int32_t* carried, const int64_t* streak_row,
         const int32_t* streak, int64_t num_streaks, int64_t batch_size, std::vector<Seats>& seats)
      : s_(s), q_(q), seats_(seats), remaining_(batch_size) {
    in_window_ = q.window_steps >= 2;
    streaks_.assign(streak_row, streak_row + num_streaks);
    lengths_.assign(streak, streak + num_streaks);
    seats_.resize(s.num_environments);
    for (int64_t e = 0; e < s.num_environments; ++e) {
      Seats& seat = seats_[e];
      seat.count = 0;
      seat.left = int32_t(std::min(q.max_per_environment, q.max_window - window[e]));
      seat.plain = seat.next_tasks = int32_t(s.offsets[e + 1] - s.offsets[e]);
      seat.resting = 0;
      seat.next_slots = int32_t(q.max_window - carried[e]);
    }
    if (s.masked)
      for (int64_t e = 0; e < s.num_environments; ++e)
        for (int64_t row = s.offsets[e]; row < s.offsets[e + 1]; ++row)
          if (s.masked[row]) --seats_[e].plain, --seats_[e].next_tasks;
    for (int64_t i = 0; i < num_streaks; ++i) {
      if (s.masked && s.masked[streaks_[i]]) continue;
      Seats& seat = seats_[s.environment[s.slot_of[streaks_[i]]]];
      if (lengths_[i] + 1 < q.max_consecutive) continue;
      --seat.plain;                                          // it rests after a pick now,
      if (lengths_[i] < q.max_consecutive) ++seat.resting;   // or rests already
    }
    if (q.max_consecutive <= 1) rest_all();
    int64_t total_next = 0;
    for (auto& seat : seats_) {
      account(seat, seat.next, seat.free);
      total_next += seat.next;
      total_free_ += seat.free;
      capacity_ += std::max(0, std::min(seat.left, seat.plain + seat.resting));
    }
    allowance_ = std::max<int64_t>({total_next - batch_size, batch_size - total_free_, 0});
  }

  int64_t capacity() const { return capacity_; }

  bool allows(int64_t row, int64_t e) const {
    const Seats& seat = seats_[e];
    if (taken(row) || (s_.masked && s_.masked[row]) || streak(row) >= q_.max_consecutive) return false;
    if (seat.left <= 0) return false;
    int32_t next, free;
    account(after(seat, rests(row)), next, free);
    const int64_t spent = spent_ + seat.next - next;
    return spent + std::max<int64_t>(0, remaining_ - 1 - (total_free_ - seat.free + free)) <= allowance_;
  }

  void take(int64_t row, int64_t e) {
    Seats& seat = seats_[e];
    Seats now = after(seat, rests(row));
    account(now, now.next, now.free);
    spent_ += seat.next - now.next;
    total_free_ += now.free - seat.free;
    ++now.count;
    seat = now;
    --remaining_;
    rows.push_back(row);
    environments.push_back(e);
  }

  bool taken(int64_t row) const { return std::find(rows.begin(), rows.end(), row) != rows.end(); }

  std::vector<int64_t> rows, environments;

 private:
  int32_t streak(int64_t row) const {
    const auto at = std::lower_bound(streaks_.begin(), streaks_.end(), row);
    return at != streaks_.end() && *at == row ? lengths_[at - streaks_.begin()] : 0;
  }
  bool rests(int64_t row) const { return streak(row) + 1 >= q_.max_consecutive; }

  void rest_all() {
    for (auto& seat : seats_) {
      seat.resting += seat.plain;
      seat.plain = 0;
    }
  }

  Seats after(const Seats& seat, bool rests) const {
    Seats next = seat;
    --next.left;
    next.plain -= !rests;
    next.resting -= rests;
    next.next_slots -= in_window_;
    next.next_tasks -= rests;
    return next;
  }

  void account(const Seats& seat, int32_t& next, int32_t& free) const {
    next = std::max(0, std::min(int32_t(q_.max_per_environment), std::min(seat.next_slots, seat.next_tasks)));
    const int32_t without_window = in_window_ ? seat.next_slots - next : seat.left;
    const int32_t without_rest = seat.plain + std::min(seat.resting, seat.next_tasks - next);
    free = std::max(0, std::min(std::min(seat.left, seat.plain + seat.resting), std::min(without_window, without_rest)));
  }

  const State& s_;
  const Quotas& q_;
  std::vector<Seats>& seats_;
  std::vector<int64_t> streaks_;
  std::vector<int32_t> lengths_;
  int64_t remaining_, total_free_ = 0, spent_ = 0, allowance_ = 0, capacity_ = 0;
  bool in_window_;
};

struct Vectors {
  const float *within, *cross;  // [N, Dw], [N, Dc]
  int64_t within_features, cross_features;

  double similarity(int64_t a, int64_t b, bool same) const {
    const int64_t D = same ? within_features : cross_features;
    const float* x = same ? within : cross;
    return clipped(exact_dot(x + a * D, x + b * D, D));
  }
};

double rounded(double value) { return std::nearbyint(value * 1e6) / 1e6; }

// The coverage pick of one environment, or -1 when the ledger refuses all its tasks.
int64_t cover_one(const State& s, const Vectors& v, const Ledger& ledger, int64_t e, bool explores) {
  std::vector<int64_t> rows;
  for (int64_t row = s.offsets[e]; row < s.offsets[e + 1]; ++row)
    if (ledger.allows(row, e)) rows.push_back(row);
  if (rows.empty()) return -1;
  auto keep_least = [&rows](auto value) {
    std::vector<double> values;
    for (int64_t row : rows) values.push_back(value(row));
    const double least = *std::min_element(values.begin(), values.end());
    size_t kept = 0;
    for (size_t i = 0; i < rows.size(); ++i)
      if (values[i] == least) rows[kept++] = rows[i];
    rows.resize(kept);
  };
  if (!explores) keep_least([&](int64_t row) { return -evaluate(s, row, e).u; });
  keep_least([&](int64_t row) { return exposure_of(s, row); });
  if (rows.size() > 1) {
    std::vector<int64_t> known;
    for (int64_t row = s.offsets[e]; row < s.offsets[e + 1]; ++row)
      if (s.slot_of[row] >= 0 || ledger.taken(row)) known.push_back(row);
    if (!known.empty())
      keep_least([&](int64_t row) {
        double closest = 0;
        for (int64_t other : known) closest = std::max(closest, v.similarity(row, other, true));
        return rounded(closest);
      });
  }
  return rows.front();
}

// Environments by (exposures, key), the first `count` of those not yet due before.
std::vector<int64_t> first_environments(const State& s, const uint64_t* key, int64_t count) {
  std::vector<int64_t> order(s.num_environments);
  for (int64_t e = 0; e < s.num_environments; ++e) order[e] = e;
  auto before = [&](int64_t a, int64_t b) {
    if (s.environment_exposure[a] != s.environment_exposure[b]) return s.environment_exposure[a] < s.environment_exposure[b];
    return key[a] != key[b] ? key[a] < key[b] : a < b;
  };
  count = std::min<int64_t>(count, order.size());
  if (count == 0) return {};
  if (count < s.num_environments) {
    // Heap of the first `count`: most environments fail the comparison with its top.
    std::vector<int64_t> heap(order.begin(), order.begin() + count);
    std::make_heap(heap.begin(), heap.end(), before);
    for (int64_t e = count; e < s.num_environments; ++e)
      if (before(e, heap.front())) {
        std::pop_heap(heap.begin(), heap.end(), before);
        heap.back() = e;
        std::push_heap(heap.begin(), heap.end(), before);
      }
    std::sort_heap(heap.begin(), heap.end(), before);
    return heap;
  }
  std::sort(order.begin(), order.end(), before);
  return order;
}

struct Entry {
  double worth, variance;
  int64_t row;
  int64_t index, seen;  // place in the shortlist; picks that `worth` accounts for
  bool operator<(const Entry& other) const {
    if (worth != other.worth) return worth < other.worth;
    if (variance != other.variance) return variance < other.variance;
    return row > other.row;
  }
};

int64_t environment_of(const State& s, int64_t row) { return std::upper_bound(s.offsets, s.offsets + s.num_environments + 1, row) - s.offsets - 1; }

}  // namespace



// One batch between its two lanes.
struct Filling {
  State state;
  Quotas quotas;
  Vectors vectors;
  std::vector<Seats> seats;
  Ledger* ledger;
};

EXPORT Filling* envsched_begin(const State* s, const int64_t* quotas, const int32_t* window, const int32_t* carried, const int64_t* streak_row,
                               const int32_t* streak, int64_t num_streaks, int64_t batch_size, const float* within,
                               int64_t within_features, const float* cross, int64_t cross_features) {
  auto* f = new Filling{*s, {quotas[0], quotas[1], quotas[2], quotas[3]}, {within, cross, within_features, cross_features}, {}, nullptr};
  f->ledger = new Ledger(f->state, f->quotas, window, carried, streak_row, streak, num_streaks, batch_size, f->seats);
  return f;
}

EXPORT int64_t envsched_capacity(const Filling* f) { return f->ledger->capacity(); }

EXPORT void envsched_end(Filling* f) {
  delete f->ledger;
  delete f;
}

EXPORT int64_t envsched_cover(Filling* f, const uint64_t* key, int64_t due, const uint8_t* explores, int64_t wanted, int64_t* out) {
  int64_t made = 0;
  const std::vector<int64_t> order = first_environments(f->state, key, due);
  for (bool progress = true; made < wanted && progress;) {
    progress = false;
    for (int64_t e : order) {
      if (made == wanted) break;
      const int64_t row = cover_one(f->state, f->vectors, *f->ledger, e, explores[made]);
      if (row < 0) continue;
      f->ledger->take(row, e);
      out[made++] = row;
      progress = true;
    }
    if (int64_t(order.size()) < f->state.num_environments) break;  // a second round needs all environments
  }
  return made;
}

// Greedy argmax of bound - penalty * closeness over a shortlist; ties by variance, then row. Stops, with the number of
// picks made, when a pick would not beat `ceiling`, the best bound outside the shortlist, unless `forced`.
// closeness [wanted] comes out with each pick, gap: the largest amount by which a forced pick fell short of the ceiling.
EXPORT int64_t envsched_exploit(Filling* f, const int64_t* row, const double* bound, const double* variance, int64_t count, double penalty,
                                double ceiling, int64_t wanted, int forced, int64_t* out, double* closeness, double* gap, int64_t* dots) {
  Ledger& ledger = *f->ledger;
  std::vector<Entry> entries(count);
  std::vector<double> closest(count, 0.0);
  std::vector<int64_t> environment(count, -1);
  for (int64_t i = 0; i < count; ++i) entries[i] = {bound[i], variance[i], row[i], i, penalty == 0 ? INT64_MAX : 0};
  std::priority_queue<Entry> queue(std::less<Entry>(), std::move(entries));
  int64_t made = 0;
  while (made < wanted && !queue.empty()) {
    Entry top = queue.top();
    if (!forced && top.worth <= ceiling) break;
    queue.pop();
    const int64_t i = top.index;
    if (environment[i] < 0) environment[i] = environment_of(f->state, top.row);
    if (!ledger.allows(top.row, environment[i])) continue;
    if (top.seen < int64_t(ledger.rows.size())) {
      // Likeness to one more pick at a time: most candidates fall behind the next one before all picks are compared.
      const double next = queue.empty() ? -INFINITY : queue.top().worth;
      for (top.worth = bound[i] - penalty * closest[i]; top.seen < int64_t(ledger.rows.size()) && top.worth >= next; ++top.seen, ++*dots) {
        closest[i] = std::max(closest[i], f->vectors.similarity(top.row, ledger.rows[top.seen], environment[i] == ledger.environments[top.seen]));
        top.worth = bound[i] - penalty * closest[i];
      }
      queue.push(top);
      continue;
    }
    *gap = std::max(*gap, ceiling - top.worth);
    ledger.take(top.row, environment[i]);
    out[made] = top.row;
    closeness[made++] = closest[i];
  }
  return made;
}

// The account of one batch under quotas that look one step ahead; envsched/select/guards.py says why this is enough.
#pragma once
#include "state.h"

struct Quotas {
  int64_t max_consecutive, max_window, max_per_environment, window_steps;
};

// Tasks that a batch may not have; rows of the whole pool on every rank, ascending.
struct Closed {
  const uint8_t* masked;  // [N] shut out, those under a lease too; null: none
  const int64_t* shut;    // [num_shut] where it is set
  int64_t num_shut;
  const int64_t *leased, *since;  // [num_leased] picked at step `since`, the record is out: windows count them
  int64_t num_leased;
  const uint8_t* barred;  // [N] kept from the exploitation lane while any other is open; null: none
};

// What shut a task out, as bits; the names stand in envsched/select/ledger.py.
enum Shut : uint32_t { CONSECUTIVE = 1, WINDOW = 2, ENVIRONMENT = 4, FILTERS = 8, AHEAD = 16 };

// The picks an environment can still give now and at the next step.
struct Seats {
  int32_t left, plain, resting, next_slots, next_tasks, next, free, count, streaks, window;
};

// Few environments differ from one that nobody has picked from: they alone have seats of their own, the others are counted by size.
class Ledger {
 public:
  // size_count [L]: environments of each size, the last all larger ones (L > C1 + C3).
  Ledger(const State& s, const Quotas& q, const Closed& closed, const int64_t* size_count, int64_t num_sizes, int64_t step, int64_t batch_size)
      : s_(s), q_(q), masked_(closed.masked), remaining_(batch_size), in_window_(q.window_steps >= 2) {
    int64_t total_next = 0;
    for (int64_t size = 0; size < num_sizes; ++size) {
      const Seats seat = untouched(size);
      total_next += size_count[size] * seat.next;
      total_free_ += size_count[size] * seat.free;
      capacity_ += size_count[size] * possible(seat);
    }
    for (int64_t i = s.num_visits; i-- > 0;) {
      const int64_t past = s.visit_step[i], slot = s.visit_slot[i];
      if (past >= step) continue;
      if (past < std::min(step - q.window_steps + 1, step - 1)) break;
      Seats& seat = own(s.environment[slot]);
      if (past >= step - q.window_steps + 1) --seat.left;
      if (past > step - q.window_steps + 1) --seat.next_slots;
      if (past == step - 1) streaks_.push_back({s.row[slot], s.streak[slot]});
    }
    std::sort(streaks_.begin(), streaks_.end(), [](const Streak& a, const Streak& b) { return a.row < b.row; });
    for (const Streak& streak : streaks_) {
      Seats& seat = own(s.environment[slot_of(s, streak.row)]);
      ++seat.streaks;
      if (streak.length + 1 < q.max_consecutive || q.max_consecutive <= 1) continue;
      --seat.plain;                                              // it rests after a pick now,
      if (streak.length < q.max_consecutive) ++seat.resting;     // or rests already
    }
    if (q.max_consecutive <= 1)
      for (const Streak& streak : streaks_)
        if (streak.length >= q.max_consecutive) --own(s.environment[slot_of(s, streak.row)]).resting;
    for (int64_t i = 0; i < closed.num_leased; ++i) {
      Seats& seat = own(environment_of(s, closed.leased[i]));
      if (closed.since[i] >= step - q.window_steps + 1) --seat.left;
      if (closed.since[i] > step - q.window_steps + 1) --seat.next_slots;
    }
    int64_t e = 0;
    for (int64_t i = 0; i < closed.num_shut; ++i) {
      const int64_t before = e;
      while (s.offsets[e + 1] <= closed.shut[i]) ++e;
      num_narrowed_ += i == 0 || e != before;
      Seats& seat = own(e);
      --seat.next_tasks;
      const int32_t length = streak(closed.shut[i], e);
      if (length < q.max_consecutive) --(length + 1 >= q.max_consecutive ? seat.resting : seat.plain);
    }
    for (size_t i = 0; i < touched_.size(); ++i) {
      const Seats base = untouched(size(environments_touched_[i]));
      Seats& seat = touched_[i];
      seat.window = base.left - seat.left;
      seat.left = int32_t(std::min<int64_t>(q.max_per_environment, q.max_window + seat.left - base.left));
      account(seat, seat.next, seat.free);
      total_next += seat.next - base.next;
      total_free_ += seat.free - base.free;
      capacity_ += possible(seat) - possible(base);
    }
    allowance_ = std::max<int64_t>({total_next - batch_size, batch_size - total_free_, 0});
  }

  Ledger(const Ledger&) = delete;
  ~Ledger() {
    for (const int64_t e : environments_touched_) s_.seat_of[e] = -1;
  }

  int64_t capacity() const { return capacity_; }

  // May a task of e that rests after a pick, or does not, be the next pick?
  bool allows(int64_t e, bool rests) const {
    const Seats seat = seat_of(e);
    if (seat.left <= 0) return false;
    int32_t next, free;
    account(after(seat, rests), next, free);
    const int64_t spent = spent_ + seat.next - next;
    return spent + std::max<int64_t>(0, remaining_ - 1 - (total_free_ - seat.free + free)) <= allowance_;
  }

  bool allows_row(int64_t row, int64_t e) const { return is_open(row, e) && allows(e, rests(row, e)); }
  bool is_open(int64_t row, int64_t e) const { return !masked(row) && !taken(row, e) && streak(row, e) < q_.max_consecutive; }
  bool masked(int64_t row) const { return masked_ && masked_[row]; }
  bool rests(int64_t row, int64_t e) const { return streak(row, e) + 1 >= q_.max_consecutive; }
  bool taken(int64_t row, int64_t e) const { return seat_of(e).count && std::find(rows.begin(), rows.end(), row) != rows.end(); }

  // What shuts a task out that is neither taken nor allowed.
  Shut verdict(int64_t row, int64_t e) const {
    if (masked(row)) return FILTERS;
    if (streak(row, e) >= q_.max_consecutive) return CONSECUTIVE;
    const Seats seat = seat_of(e);
    if (seat.count + seat.window >= q_.max_window) return WINDOW;
    return seat.count >= q_.max_per_environment ? ENVIRONMENT : AHEAD;
  }

  // Environments with tasks that are shut out.
  int64_t num_narrowed() const { return num_narrowed_; }

  void take(int64_t row, int64_t e, uint32_t bound) {
    const bool rest = rests(row, e);
    Seats& seat = own(e);
    Seats now = after(seat, rest);
    account(now, now.next, now.free);
    spent_ += seat.next - now.next;
    total_free_ += now.free - seat.free;
    ++now.count;
    seat = now;
    --remaining_;
    rows.push_back(row);
    environments.push_back(e);
    bound_by.push_back(bound);
  }

  std::vector<int64_t> rows, environments;
  std::vector<uint32_t> bound_by;  // what shut out tasks that ranked before each pick, `Shut` bits

 private:
  struct Streak {
    int64_t row;
    int32_t length;
  };

  int64_t size(int64_t e) const { return s_.offsets[e + 1] - s_.offsets[e]; }

  Seats untouched(int64_t size) const {
    Seats seat{};
    seat.left = int32_t(std::min(q_.max_per_environment, q_.max_window));
    seat.next_slots = int32_t(q_.max_window);
    seat.next_tasks = int32_t(size);
    (q_.max_consecutive <= 1 ? seat.resting : seat.plain) = int32_t(size);
    account(seat, seat.next, seat.free);
    return seat;
  }

  Seats seat_of(int64_t e) const { return s_.seat_of[e] >= 0 ? touched_[s_.seat_of[e]] : untouched(size(e)); }

  Seats& own(int64_t e) {
    if (s_.seat_of[e] < 0) {
      s_.seat_of[e] = int32_t(touched_.size());
      touched_.push_back(untouched(size(e)));
      environments_touched_.push_back(e);
    }
    return touched_[s_.seat_of[e]];
  }

  int32_t streak(int64_t row, int64_t e) const {
    if (!seat_of(e).streaks) return 0;
    const auto at = std::lower_bound(streaks_.begin(), streaks_.end(), row, [](const Streak& a, int64_t wanted) { return a.row < wanted; });
    return at != streaks_.end() && at->row == row ? at->length : 0;
  }

  static int32_t possible(const Seats& seat) { return std::max(0, std::min(seat.left, seat.plain + seat.resting)); }

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
  const Quotas q_;
  const uint8_t* masked_;
  std::vector<Seats> touched_;
  std::vector<int64_t> environments_touched_;
  std::vector<Streak> streaks_;
  int64_t remaining_, total_free_ = 0, spent_ = 0, allowance_ = 0, capacity_ = 0, num_narrowed_ = 0;
  bool in_window_;
};

// The exploitation lane: lazy greedy over a shortlist, with a certificate; envsched/select/lanes.py says the rule.
#pragma once
#include "ledger.h"
#include "similarity.h"

struct Contender {
  int64_t row, environment;
  double bound, variance;  // bound: its worth while nothing in the batch is like it
  Feature feature;
};

// Greedy argmax of bound - penalty * closeness; ties by variance, then row. The penalty only lowers a worth, so what was worth
// less before is worth less now: a candidate is compared with a pick only while it is ahead of all others. Float32 products
// with a bound of their error rule most comparisons out; a pick's closeness is exact.
class Greedy {
 public:
  Greedy(const Vectors& v, Ledger& ledger, double penalty) : v_(v), ledger_(ledger), picked_(v), penalty_(penalty), slack_(v.slack()) {}

  int64_t products = 0;  // inner products taken

  // What the ledger's picks look like; to be given for all of them, in their order, before a run.
  void know(const Feature& feature) { picked_.add(feature, ledger_.environments[picked_.size()]); }

  void add(const std::vector<Contender>& candidates) {
    const size_t before = entries_.size();
    for (const Contender& candidate : candidates) entries_.push_back({candidate, candidate.bound, 0, 0, false});
    for (size_t i = before; i < entries_.size(); ++i) fresh_.push_back({entries_[i].worth, int32_t(i)});
    sorted_ = next_, some_ = SOME;
  }

  // Up to `wanted` picks; stops where the next one would not beat `ceiling`, the best bound outside the shortlist, unless
  // `forced`. gap: the largest amount by which a forced pick fell short of the ceiling.
  int64_t run(double ceiling, int64_t wanted, bool forced, double& gap, int64_t* out, double* closeness) {
    int64_t made = 0;
    const double least = forced ? -INFINITY : ceiling;
    floor_ = least;
    while (made < wanted) {
      const int32_t i = best();
      if (i < 0) break;
      Entry& top = entries_[i];
      if (!forced && top.worth <= ceiling) break;
      drop();
      const Contender& c = top.candidate;
      if (!ledger_.allows_row(c.row, c.environment)) {
        if (!ledger_.taken(c.row, c.environment)) shut_.push_back(i);
        continue;
      }
      if (penalty_ > 0 && top.seen < picked_.size()) {
        look(top);
        push(i);
        continue;
      }
      if (penalty_ > 0 && !top.exact) {
        refine(top);
        push(i);
        continue;
      }
      gap = std::max(gap, ceiling - top.worth);
      ledger_.take(c.row, c.environment, bound_by(top.worth));
      picked_.add(c.feature, c.environment);
      out[made] = c.row;
      closeness[made++] = top.exact ? top.closest : 0;
      floor_ = least;
    }
    return made;
  }

 private:
  static constexpr int64_t SOME = 128, AHEAD = 8;  // put in order at first; fetched before they are looked at

  struct Entry {
    Contender candidate;
    double worth;    // from above; the worth itself once `exact`
    double closest;  // from below; exact once `exact`
    size_t seen;     // picks that `worth` accounts for
    bool exact;
  };
  struct Fresh {
    double worth;
    int32_t i;
  };

  bool before(int32_t a, int32_t b) const {
    const Entry &x = entries_[a], &y = entries_[b];
    if (x.worth != y.worth) return x.worth < y.worth;
    if (x.candidate.variance != y.candidate.variance) return x.candidate.variance < y.candidate.variance;
    return x.candidate.row > y.candidate.row;
  }

  // The first of heap and fresh candidates, -1 where none is left; fresh ones are in order of worth alone. One that comes up is
  // looked at while its features are at hand: where thousands share one worth, each is fetched from memory once.
  int32_t best() {
    while (next_ < fresh_.size()) {
      if (next_ == sorted_) sort_some();
      if (!heap_.empty() && fresh_[next_].worth < entries_[heap_.front()].worth) break;
      if (next_ + AHEAD < sorted_) ask(entries_[fresh_[next_ + AHEAD].i].candidate.feature);
      const int32_t i = fresh_[next_++].i;
      Entry& entry = entries_[i];
      if (penalty_ > 0 && ledger_.allows_row(entry.candidate.row, entry.candidate.environment)) look(entry);
      push(i);
    }
    return heap_.empty() ? -1 : heap_.front();
  }

  // Most candidates are never reached, so the next few best are all that is put in order; twice as many each time.
  void sort_some() {
    auto before = [](const Fresh& a, const Fresh& b) { return a.worth > b.worth; };
    const auto from = fresh_.begin() + next_;
    const auto to = fresh_.begin() + std::min(fresh_.size(), next_ + some_);
    if (to != fresh_.end()) std::nth_element(from, to, fresh_.end(), before);
    std::sort(from, to, before);
    sorted_ = to - fresh_.begin();
    some_ *= 2;
    for (auto at = from; at < std::min(to, from + AHEAD); ++at) ask(entries_[at->i].candidate.feature);
  }

  void ask(const Feature& feature) const {
    for (int64_t d = 0; d < v_.cross_features; d += 16) __builtin_prefetch(feature.cross + d);
  }

  void push(int32_t i) {
    heap_.push_back(i);
    std::push_heap(heap_.begin(), heap_.end(), [this](int32_t a, int32_t b) { return before(a, b); });
  }

  void drop() {
    std::pop_heap(heap_.begin(), heap_.end(), [this](int32_t a, int32_t b) { return before(a, b); });
    heap_.pop_back();
  }

  // Compare an allowed candidate with more and more picks, until it can't be the next one or has met them all.
  void look(Entry& top) {
    if (top.seen == picked_.size()) return;
    for (top.exact = false; top.seen < picked_.size() && top.worth >= floor_;) compare(top);
    if (top.seen == picked_.size()) floor_ = std::max(floor_, top.worth - 2 * penalty_ * slack_);
  }

  void compare(Entry& one) {
    const size_t from = one.seen;
    one.closest = std::max(one.closest, picked_.nearest(one.candidate.feature, one.candidate.environment, from, one.seen) - slack_);
    one.worth = std::min(one.worth, one.candidate.bound - penalty_ * one.closest);
    products += one.seen - from;
  }

  // What shuts out tasks that are worth more than the next pick.
  uint32_t bound_by(double worth) {
    uint32_t bound = 0;
    for (const int32_t i : shut_) {
      Entry& x = entries_[i];
      const uint32_t verdict = ledger_.verdict(x.candidate.row, x.candidate.environment);
      if (bound & verdict) continue;
      if (penalty_ > 0) {
        for (; x.seen < picked_.size() && x.worth > worth; x.exact = false) compare(x);
        if (x.worth > worth && !x.exact) refine(x);
      }
      if (x.worth > worth) bound |= verdict;
    }
    return bound;
  }

  // The exact closeness: only picks that may be the closest are looked at again.
  void refine(Entry& top) {
    double closest = 0;
    const Contender& c = top.candidate;
    for (size_t j = 0; j < picked_.size(); ++j)
      if (picked_.near(c.feature, c.environment, j) + slack_ >= top.closest) {
        closest = std::max(closest, v_.similarity(c.feature, picked_[j], picked_.lives_with(j, c.environment)));
        ++products;
      }
    top.closest = closest;
    top.worth = top.candidate.bound - penalty_ * closest;
    top.exact = true;
  }

  const Vectors& v_;
  Ledger& ledger_;
  Picked picked_;
  double penalty_, slack_;
  std::vector<Entry> entries_;
  std::vector<Fresh> fresh_;
  size_t next_ = 0, sorted_ = 0, some_ = SOME;
  double floor_ = -INFINITY;  // the next pick is worth no less, or comes from outside
  std::vector<int32_t> heap_, shut_;  // shut: candidates that came up and are not allowed
};

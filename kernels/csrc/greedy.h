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
  Greedy(const Vectors& v, Ledger& ledger, double penalty) : v_(v), ledger_(ledger), penalty_(penalty), slack_(v.slack()) {}

  int64_t products = 0;  // inner products taken

  // What the ledger's picks look like; to be given for all of them before a run.
  void know(const Feature& feature) { picked_.push_back(feature); }

  void add(const std::vector<Contender>& candidates) {
    const size_t before = entries_.size();
    for (const Contender& candidate : candidates) entries_.push_back({candidate, candidate.bound, 0, 0, false});
    for (size_t i = before; i < entries_.size(); ++i) fresh_.push_back({entries_[i].worth, int32_t(i)});
    sorted_ = next_;
  }

  // Up to `wanted` picks; stops where the next one would not beat `ceiling`, the best bound outside the shortlist, unless
  // `forced`. gap: the largest amount by which a forced pick fell short of the ceiling.
  int64_t run(double ceiling, int64_t wanted, bool forced, double& gap, int64_t* out, double* closeness) {
    int64_t made = 0;
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
      picked_.push_back(c.feature);
      out[made] = c.row;
      closeness[made++] = top.exact ? top.closest : 0;
    }
    return made;
  }

 private:
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

  // The first of heap and fresh candidates, -1 where none is left; fresh ones are in order of worth alone.
  int32_t best() {
    while (next_ < fresh_.size()) {
      if (next_ == sorted_) sort_some();
      if (!heap_.empty() && fresh_[next_].worth < entries_[heap_.front()].worth) break;
      constexpr size_t AHEAD = 8;
      if (next_ + AHEAD < sorted_) ask(entries_[fresh_[next_ + AHEAD].i].candidate.feature);
      push(fresh_[next_++].i);
    }
    return heap_.empty() ? -1 : heap_.front();
  }

  // Most candidates are never reached, so the next few best are all that is put in order.
  void sort_some() {
    constexpr size_t SOME = 128;
    auto before = [](const Fresh& a, const Fresh& b) { return a.worth > b.worth; };
    const auto from = fresh_.begin() + next_;
    const auto to = fresh_.begin() + std::min(fresh_.size(), next_ + SOME);
    if (to != fresh_.end()) std::nth_element(from, to, fresh_.end(), before);
    std::sort(from, to, before);
    sorted_ = to - fresh_.begin();
    for (auto at = from; at < std::min(to, from + 8); ++at) ask(entries_[at->i].candidate.feature);
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

  // Compare with one more pick at a time: most candidates fall behind the next one before all picks are looked at.
  void look(Entry& top) {
    const double other = heap_.empty() ? -INFINITY : entries_[heap_.front()].worth;
    const double next = next_ < sorted_ ? std::max(other, fresh_[next_].worth) : other;
    top.exact = false;
    for (; top.seen < picked_.size() && top.worth >= next; ++top.seen, ++products) {
      top.closest = std::max(top.closest, near(top, top.seen) - slack_);
      top.worth = std::min(top.worth, top.candidate.bound - penalty_ * top.closest);
    }
  }

  // What shuts out tasks that are worth more than the next pick.
  uint32_t bound_by(double worth) {
    uint32_t bound = 0;
    for (const int32_t i : shut_) {
      Entry& x = entries_[i];
      const uint32_t verdict = ledger_.verdict(x.candidate.row, x.candidate.environment);
      if (bound & verdict) continue;
      if (penalty_ > 0) {
        for (; x.seen < picked_.size() && x.worth > worth; ++x.seen, ++products) {
          x.closest = std::max(x.closest, near(x, x.seen) - slack_);
          x.worth = std::min(x.worth, x.candidate.bound - penalty_ * x.closest);
          x.exact = false;
        }
        if (x.worth > worth && !x.exact) refine(x);
      }
      if (x.worth > worth) bound |= verdict;
    }
    return bound;
  }

  // The exact closeness: only picks that may be the closest are looked at again.
  void refine(Entry& top) {
    double closest = 0;
    for (size_t j = 0; j < picked_.size(); ++j)
      if (near(top, j) + slack_ >= top.closest) {
        closest = std::max(closest, v_.similarity(top.candidate.feature, picked_[j], same(top, j)));
        ++products;
      }
    top.closest = closest;
    top.worth = top.candidate.bound - penalty_ * closest;
    top.exact = true;
  }

  double near(const Entry& top, size_t j) const { return v_.near_similarity(top.candidate.feature, picked_[j], same(top, j)); }
  bool same(const Entry& top, size_t j) const { return top.candidate.environment == ledger_.environments[j]; }

  const Vectors& v_;
  Ledger& ledger_;
  double penalty_, slack_;
  std::vector<Entry> entries_;
  std::vector<Fresh> fresh_;
  size_t next_ = 0, sorted_ = 0;
  std::vector<int32_t> heap_, shut_;  // shut: candidates that came up and are not allowed
  std::vector<Feature> picked_;
};

// The coverage lane: under-observed environments first; envsched/select/lanes.py says the rule.
#pragma once
#include "draws.h"
#include "ledger.h"
#include "similarity.h"

inline double rounded(double value) { return std::nearbyint(value * 1e6) / 1e6; }

// The first `count` environments by (decayed exposures, word, number).
inline std::vector<int64_t> first_environments(const State& s, const Words& words, int64_t count) {
  struct Due {
    double exposure;
    uint64_t word;
    int64_t e;
    bool operator<(const Due& other) const {
      if (exposure != other.exposure) return exposure < other.exposure;
      return word != other.word ? word < other.word : e < other.e;
    }
  };
  std::vector<Due> heap;  // its top is the last of the first: most environments fail the comparison with it
  const std::vector<uint64_t> word = words.first(s.num_environments);
  for (int64_t e = 0; e < s.num_environments && count; ++e) {
    const Due due{s.environment_exposure[e], word[e], e};
    if (int64_t(heap.size()) == count) {
      if (!(due < heap.front())) continue;
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
    }
    heap.push_back(due);
    std::push_heap(heap.begin(), heap.end());
  }
  std::sort_heap(heap.begin(), heap.end());
  std::vector<int64_t> order;
  for (const Due& due : heap) order.push_back(due.e);
  return order;
}

// The coverage pick of one environment held here among its open tasks, -1 where there is none: of those that rest after a
// pick where `resting`, of the others where `plain`.
inline int64_t cover_one(const State& s, const Vectors& v, const Ledger& ledger, int64_t e, bool explores, bool plain, bool resting) {
  std::vector<int64_t> rows;
  const int64_t first = s.offsets[e], last = s.offsets[e + 1];
  for (int64_t row = first; row < last; ++row)
    if (ledger.is_open(row, e) && (ledger.rests(row, e) ? resting : plain)) rows.push_back(row);
  if (rows.empty()) return -1;
  auto keep_least = [&rows](auto value) {
    size_t kept = 0;
    double least = INFINITY;
    for (const int64_t row : rows) {
      const double one = value(row);
      if (one < least) kept = 0, least = one;
      if (one == least) rows[kept++] = row;
    }
    rows.resize(kept);
  };
  const Parents silent = parents(s, e, UNSEEN);
  if (!explores)
    keep_least([&](int64_t row) {
      const int64_t slot = s.slot_of[s.place(row)];
      return -(slot < 0 ? evaluate(s, row, UNSEEN, silent) : evaluate(s, row, e, slot)).u;
    });
  keep_least([&](int64_t row) {
    const int64_t slot = s.slot_of[s.place(row)];
    return slot < 0 ? 0.0 : s.exposure[slot];
  });
  if (rows.size() > 1) {
    std::vector<int64_t> known;
    for (int64_t row = first; row < last; ++row)
      if (s.slot_of[s.place(row)] >= 0 || ledger.taken(row, e)) known.push_back(row);
    if (!known.empty())
      keep_least([&](int64_t row) {
        double closest = 0;
        for (const int64_t other : known) closest = std::max(closest, v.similarity(v.of(s.place(row)), v.of(s.place(other)), true));
        return rounded(closest);
      });
  }
  return rows.front();
}

// On several ranks each offers, for the environments it holds, the pick under every rule that may apply when their turn comes.
class Offers {
 public:
  // False: the ranks could not exchange.
  bool make(const State& s, const Vectors& v, const Ledger& ledger, const std::vector<int64_t>& order) {
    std::vector<Offer> mine;
    for (const int64_t e : order)
      if (e >= s.first_environment && e < s.last_environment) {
        Offer offer{e, {}};
        for (int64_t rule = 0; rule < RULES; ++rule) offer.row[rule] = cover_one(s, v, ledger, e, rule & 1, rule & 2, rule & 4);
        mine.push_back(offer);
      }
    if (!gather_items(s, mine)) return false;
    offers_ = std::move(mine);
    return true;
  }

  int64_t row(int64_t e, bool explores, bool plain, bool resting) const {
    for (const Offer& offer : offers_)
      if (offer.e == e) return offer.row[explores + 2 * plain + 4 * resting];
    return -1;
  }

 private:
  static constexpr int64_t RULES = 8;
  struct Offer {
    int64_t e;
    int64_t row[RULES];
  };
  std::vector<Offer> offers_;
};

// At most one pick for each entry of `explores`, into the ledger; false: the ranks could not exchange.
inline bool cover(const State& s, const Vectors& v, Ledger& ledger, const std::vector<int64_t>& order, const std::vector<bool>& explores) {
  Offers offers;
  if (s.exchange && !offers.make(s, v, ledger, order)) return false;
  for (bool progress = true; ledger.rows.size() < explores.size() && progress;) {
    progress = false;
    for (const int64_t e : order) {
      if (ledger.rows.size() == explores.size()) break;
      const bool explore = explores[ledger.rows.size()], plain = ledger.allows(e, false), resting = ledger.allows(e, true);
      const int64_t row = s.exchange ? offers.row(e, explore, plain, resting) : cover_one(s, v, ledger, e, explore, plain, resting);
      if (row < 0) continue;
      ledger.take(row, e);
      progress = true;
    }
    // A second round needs all environments, and on ranks new offers: Python composes such batches.
    if (s.exchange || int64_t(order.size()) < s.num_environments) break;
  }
  return true;
}

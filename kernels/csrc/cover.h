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

// What ranks the tasks of an environment.
inline double worth(const State& s, int64_t row, int64_t e) {
  const int64_t slot = s.slot_of[s.place(row)];
  return predicted(s, row, e, slot) * headroom(s, slot);
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
  if (!explores) keep_least([&](int64_t row) { return -worth(s, row, e); });
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

// What shut out tasks of an environment held here that rank before its pick; all that are shut out where it has none (-1).
inline uint32_t bound_of(const State& s, const Ledger& ledger, int64_t e, int64_t pick, bool explores, bool plain, bool resting) {
  auto exposure = [&](int64_t row) {
    const int64_t slot = s.slot_of[s.place(row)];
    return slot < 0 ? 0.0 : s.exposure[slot];
  };
  uint32_t bound = 0;
  for (int64_t row = s.offsets[e]; row < s.offsets[e + 1]; ++row) {
    if (ledger.taken(row, e) || (ledger.is_open(row, e) && (ledger.rests(row, e) ? resting : plain))) continue;
    if (pick < 0 || (explores ? exposure(row) < exposure(pick) : worth(s, row, e) > worth(s, pick, e))) bound |= ledger.verdict(row, e);
  }
  return bound;
}

struct CoverPick {
  int64_t row;
  uint32_t bound;
};

// On several ranks each offers, for the environments it holds, the pick under every rule that may apply when their turn comes.
class Offers {
 public:
  // False: the ranks could not exchange.
  bool make(const State& s, const Vectors& v, const Ledger& ledger, const std::vector<int64_t>& order) {
    std::vector<Offer> mine;
    for (const int64_t e : order)
      if (e >= s.first_environment && e < s.last_environment) {
        Offer offer{e, {}};
        for (int64_t rule = 0; rule < RULES; ++rule) {
          const int64_t row = cover_one(s, v, ledger, e, rule & 1, rule & 2, rule & 4);
          offer.pick[rule] = {row, bound_of(s, ledger, e, row, rule & 1, rule & 2, rule & 4)};
        }
        mine.push_back(offer);
      }
    if (!gather_items(s, mine)) return false;
    offers_ = std::move(mine);
    return true;
  }

  CoverPick pick(int64_t e, bool explores, bool plain, bool resting) const {
    for (const Offer& offer : offers_)
      if (offer.e == e) return offer.pick[explores + 2 * plain + 4 * resting];
    return {-1, 0};
  }

 private:
  static constexpr int64_t RULES = 8;
  struct Offer {
    int64_t e;
    CoverPick pick[RULES];
  };
  std::vector<Offer> offers_;
};

// At most one pick for each entry of `explores`, into the ledger; false: the ranks could not exchange.
inline bool cover(const State& s, const Vectors& v, Ledger& ledger, const std::vector<int64_t>& order, const std::vector<bool>& explores) {
  Offers offers;
  if (s.exchange && !offers.make(s, v, ledger, order)) return false;
  uint32_t bound = 0;  // since the last pick
  for (bool progress = true; ledger.rows.size() < explores.size() && progress;) {
    progress = false;
    for (const int64_t e : order) {
      if (ledger.rows.size() == explores.size()) break;
      const bool explore = explores[ledger.rows.size()], plain = ledger.allows(e, false), resting = ledger.allows(e, true);
      CoverPick pick;
      if (s.exchange) {
        pick = offers.pick(e, explore, plain, resting);
      } else {
        pick.row = cover_one(s, v, ledger, e, explore, plain, resting);
        pick.bound = bound_of(s, ledger, e, pick.row, explore, plain, resting);
      }
      bound |= pick.bound;
      if (pick.row < 0) continue;
      ledger.take(pick.row, e, bound);
      bound = 0;
      progress = true;
    }
    // A second round needs all environments, and on ranks new offers: Python composes such batches.
    if (s.exchange || int64_t(order.size()) < s.num_environments) break;
  }
  return true;
}

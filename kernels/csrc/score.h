// The score pass: tasks whose u reaches a threshold, from a look at the blocks' peaks and at the sums of few blocks.
#pragma once
#include "state.h"

#include <array>

struct Found {
  int64_t row;
  int32_t environment, slot;
  double u;
};

// What reached a threshold: all of it, or where that is more than can be looked at, how it spreads.
struct Scored {
  static constexpr int64_t BINS = 4096;
  std::vector<Found> tasks;
  int64_t count = 0;
  double from = 0, width = 0;
  std::vector<int64_t> bins;  // by u

  // A threshold that about `wanted` of these reach; the same however they are spread over ranks.
  double reached_by(int64_t wanted) const {
    int64_t above = 0, bin = BINS;
    while (bin > 0 && above < wanted) above += bins[--bin];
    return from + width * double(bin);
  }
};

// Tasks with u >= threshold, of all ranks; past `capacity` they are only counted. False: the ranks could not exchange.
bool score(const State& s, double threshold, int64_t capacity, Scored& out);

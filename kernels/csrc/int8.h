// Features as int8 codes, packed for tiles of ROWS queries x GROUPS * LANES tasks.
// x ~ scale_x x8 with x8 in [-127, 127] and residual r_x = |x - scale_x x8|.
#pragma once
#include "common.h"

#include <cmath>

namespace {

constexpr int LANES = 16, ROWS = 13, GROUPS = 2;  // 26 sums in registers, and 65 rows serve a batch of 64

struct Vectors {
  const float* x;
  const uint8_t* packed;  // codes + 128, 16 tasks side by side, 4 features deep: [padded N / 16][D4 / 4][16][4]
  const float* scale;     // [padded N], 0 for padding
  const float* residual;  // [padded N]
  int64_t D, D4;          // D4 = D rounded up to 4

  const uint8_t* four(int64_t row, int64_t d) const { return packed + ((row / LANES * D4 / 4 + d / 4) * LANES + row % LANES) * 4; }
  int8_t code(int64_t row, int64_t d) const { return int8_t(four(row, d)[d % 4] ^ 128); }
};

#if defined(__AVX512VNNI__)
// Queries four features at a time, ROWS side by side: [D4 / 4][ROWS][4].
inline void pack_queries(const Vectors& v, const int64_t* targets, int64_t count, int8_t* packed) {
  for (int64_t d = 0; d < v.D4; ++d)
    for (int64_t r = 0; r < ROWS; ++r) packed[(d / 4 * ROWS + r) * 4 + d % 4] = r < count ? v.code(targets[r], d) : 0;
}

// GCC 12 spills arrays of accumulators and copies around the intrinsic; named registers and the bare instruction it keeps.
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
static_assert(ROWS == 13, "EACH_ROW names the rows");
#define DOT(sum, bytes, query) asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(bytes), "v"(query))

#endif

}  // namespace

// The words of envsched.select.Draws: Philox 4x64 with ten rounds, counter-based, so that any word can be had alone.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

struct Words {
  uint64_t key[2];
  uint64_t jumps = 0;  // each lies 2^128 blocks further on

  void block(uint64_t index, uint64_t (&out)[4]) const {
    constexpr uint64_t M0 = 0xD2E7470EE14C6C93ull, M1 = 0xCA5A826395121157ull, W0 = 0x9E3779B97F4A7C15ull, W1 = 0xBB67AE8584CAA73Bull;
    uint64_t c0 = index + 1, c1 = 0, c2 = jumps, c3 = 0, k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; ++round) {
      const __uint128_t a = __uint128_t(M0) * c0, b = __uint128_t(M1) * c2;
      c0 = uint64_t(b >> 64) ^ c1 ^ k0;
      c2 = uint64_t(a >> 64) ^ c3 ^ k1;
      c1 = uint64_t(b);
      c3 = uint64_t(a);
      k0 += W0;
      k1 += W1;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
  }

  // The first `count` words, and what fills their last block.
  std::vector<uint64_t> first(int64_t count) const {
    std::vector<uint64_t> out((count + 3) / 4 * 4);
    for (std::size_t i = 0; i < out.size(); i += 4) block(i / 4, *reinterpret_cast<uint64_t(*)[4]>(&out[i]));
    return out;
  }

  uint64_t operator[](uint64_t i) const {
    uint64_t four[4];
    block(i / 4, four);
    return four[i % 4];
  }
};

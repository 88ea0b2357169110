// Features as int8 codes, and the one tile of products that all int8 passes are made of: TASKS tasks x up to SOURCES sources.
//
// x ~ scale_x x8 with x8 in [-127, 127] and residual r_x = |x - scale_x x8|. The products are whole numbers: the same whatever
// instructions make them. Tasks are the rows of a tile and sources its columns, so that a task meets a batch of 64 in 4 registers.
#pragma once
#include "common.h"

#include <cmath>

namespace {

constexpr int64_t TASKS = 16, LANES = 16, SOURCES = 64;

struct Vectors {
  const float* x;
  const uint8_t* codes;   // codes + 128: [padded N][D4], and a tile's width more, which may be read
  const float* scale;     // [padded N], 0 for padding
  const float* residual;  // [padded N]
  int64_t D, D4;          // D4 = D rounded up to 4

  const uint8_t* of(int64_t row) const { return codes + row * D4; }
};

#if defined(__AVX512VNNI__)

constexpr int64_t DEPTH = 16;  // registers of 4 features that one tile instruction goes through

// At most SOURCES sources side by side, 4 features deep: [depth][groups][LANES][4], 0 beyond the last source and feature.
class Panel {
 public:
  int64_t count = 0, groups = 0, depth = 0;  // depth of the codes; they are padded to a multiple of DEPTH
  alignas(64) int32_t begin[SOURCES];        // -128 sum of each source's codes: undoes the shift of the tasks' codes

  // code_of(s): D4 codes of source s, to be xored with flip.
  template <class CodeOf>
  void fill(int64_t sources, int64_t D4, uint8_t flip, CodeOf code_of) {
    count = sources, groups = (sources + LANES - 1) / LANES, depth = D4 / 4;
    lines_.assign((depth + DEPTH - 1) / DEPTH * DEPTH * groups, Line{});
    std::fill(begin, begin + SOURCES, 0);
    for (int64_t s = 0; s < sources; ++s) {
      const auto* code = code_of(s);
      for (int64_t d = 0; d < D4; ++d) {
        const int8_t value = int8_t(uint8_t(code[d]) ^ flip);
        lines_[d / 4 * groups + s / LANES].byte[s % LANES * 4 + d % 4] = value;
        begin[s] -= 128 * value;
      }
    }
  }

  const int8_t* line(int64_t d) const { return lines_[d * groups].byte; }

 private:
  struct alignas(64) Line {
    int8_t byte[64];
  };
  std::vector<Line> lines_;
};

// Panels of the tasks source [S], SOURCES at a time.
inline std::vector<Panel> panels_of(const Vectors& v, const int64_t* source, int64_t S) {
  std::vector<Panel> panels((S + SOURCES - 1) / SOURCES);
  for (int64_t p = 0; p < int64_t(panels.size()); ++p)
    panels[p].fill(std::min(SOURCES, S - p * SOURCES), v.D4, 128, [&](int64_t s) { return v.of(source[p * SOURCES + s]); });
  return panels;
}

struct alignas(64) Products {
  int32_t of[TASKS][SOURCES];

  __m512 lane(int64_t task, int64_t group) const { return _mm512_cvtepi32_ps(_mm512_load_si512(of[task] + group * LANES)); }
};

#if defined(__AMX_INT8__)

// GCC's intrinsics don't say that they read memory; what was written must lie there.
inline void memory_is_read() { asm volatile("" ::: "memory"); }

// Tile registers of this thread: 0 to 3 hold the sums of 4 groups of sources, 4 tasks, 5 to 7 sources.
class Registers {
 public:
  Registers() {
    alignas(64) struct {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t width[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } shape;
    asm volatile("" : : "r"(&shape) : "memory");
    _tile_loadconfig(&shape);
  }
  ~Registers() { _tile_release(); }
  Registers(const Registers&) = delete;
};

template <int G>
inline void multiply(const uint8_t* tasks, int64_t D4, const Panel& panel, Products& out) {
  memory_is_read();
  // A stride of 0: every task begins with the same row.
  _tile_loadd(0, panel.begin, 0);
  if (G > 1) _tile_loadd(1, panel.begin + 16, 0);
  if (G > 2) _tile_loadd(2, panel.begin + 32, 0);
  if (G > 3) _tile_loadd(3, panel.begin + 48, 0);
  for (int64_t d = 0; d < panel.depth; d += DEPTH) {
    const int8_t* sources = panel.line(d);
    _tile_loadd(4, tasks + d * 4, D4);
    _tile_loadd(5, sources, G * 64);
    _tile_dpbusd(0, 4, 5);
    if (G > 1) {
      _tile_loadd(6, sources + 64, G * 64);
      _tile_dpbusd(1, 4, 6);
    }
    if (G > 2) {
      _tile_loadd(7, sources + 128, G * 64);
      _tile_dpbusd(2, 4, 7);
    }
    if (G > 3) {
      _tile_loadd(5, sources + 192, G * 64);
      _tile_dpbusd(3, 4, 5);
    }
  }
  _tile_stored(0, out.of[0], SOURCES * 4);
  if (G > 1) _tile_stored(1, out.of[0] + 16, SOURCES * 4);
  if (G > 2) _tile_stored(2, out.of[0] + 32, SOURCES * 4);
  if (G > 3) _tile_stored(3, out.of[0] + 48, SOURCES * 4);
}

#else

struct Registers {
  Registers() {}  // nothing to set up, but a variable of this type is used
};

// GCC 12 copies accumulators around the intrinsic; around the bare instruction, in a function of its own, it keeps them in registers.
#define DOT(sum, bytes, codes) asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(bytes), "v"(codes))

template <int G>
__attribute__((noinline)) void multiply(const uint8_t* tasks, int64_t D4, const Panel& panel, Products& out) {
  constexpr int ROWS = 4;
  for (int t = 0; t < TASKS; t += ROWS) {
    __m512i sum[ROWS][G];
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) sum[r][g] = _mm512_load_si512(panel.begin + g * LANES);
    const int8_t* sources = panel.line(0);
    for (int64_t d = 0; d < panel.depth; ++d, sources += G * 64) {
      __m512i codes[G];
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) codes[g] = _mm512_load_si512(sources + g * 64);
#pragma GCC unroll 4
      for (int r = 0; r < ROWS; ++r) {
        int32_t four;
        std::memcpy(&four, tasks + (t + r) * D4 + d * 4, 4);
        const __m512i task = _mm512_set1_epi32(four);
#pragma GCC unroll 4
        for (int g = 0; g < G; ++g) DOT(sum[r][g], task, codes[g]);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) _mm512_store_si512(out.of[t + r] + g * LANES, sum[r][g]);
  }
}

#endif

// <x8, y8> of TASKS tasks with the sources of a panel; columns of other groups are left alone.
inline void multiply(const uint8_t* tasks, int64_t D4, const Panel& panel, Products& out) {
  switch (panel.groups) {
    case 1: return multiply<1>(tasks, D4, panel, out);
    case 2: return multiply<2>(tasks, D4, panel, out);
    case 3: return multiply<3>(tasks, D4, panel, out);
    default: return multiply<4>(tasks, D4, panel, out);
  }
}

// Per source of a panel: slope and shift of its bound. A column without a source reaches nothing.
struct alignas(64) Bounds {
  float slope[SOURCES] = {}, shift[SOURCES];

  Bounds() { std::fill(shift, shift + SOURCES, -1e30f); }
};

inline float bound(const Products& products, int64_t t, int64_t s, float scale, const Bounds& b) {
  return std::fma(float(products.of[t][s]) * scale, b.slope[s], b.shift[s]);
}

// Which pairs reach: slope_s scale_i <x8, y8> + shift_s >= low_i.
struct alignas(64) Reached {
  uint16_t lanes[TASKS][SOURCES / LANES];

  void compare(const Products& products, int64_t groups, const float* scale, const Bounds& b, const float* low) {
    std::memset(lanes, 0, sizeof lanes);
    for (int64_t g = 0; g < groups; ++g) {
      const __m512 slope = _mm512_load_ps(b.slope + g * LANES), shift = _mm512_load_ps(b.shift + g * LANES);
#pragma GCC unroll 16
      for (int64_t t = 0; t < TASKS; ++t) {
        const __m512 x = _mm512_fmadd_ps(_mm512_mul_ps(products.lane(t, g), _mm512_set1_ps(scale[t])), slope, shift);
        lanes[t][g] = uint16_t(_mm512_cmp_ps_mask(x, _mm512_set1_ps(low[t]), _CMP_GE_OQ));
      }
    }
  }

  uint64_t by(int64_t t) const {
    uint64_t sources;
    std::memcpy(&sources, lanes[t], sizeof sources);
    return sources;
  }

  // Tasks that some source reaches.
  uint32_t tasks() const {
    const __m512i first = _mm512_load_si512(lanes), second = _mm512_load_si512(lanes[TASKS / 2]);
    return uint32_t(_mm512_test_epi64_mask(first, first)) | uint32_t(_mm512_test_epi64_mask(second, second)) << 8;
  }
};

// Bring the codes of tasks some tiles ahead nearer: rows of a tile register come too far apart for the processor to see it coming.
inline void fetch_ahead(const Vectors& v, int64_t column) {
  const uint8_t* ahead = v.of(column + 6 * TASKS);
  for (int64_t byte = 0; byte < TASKS * v.D4; byte += 64) __builtin_prefetch(ahead + byte);
}

// Rows of the sources' own environments.
struct alignas(64) Homes {
  int32_t start[SOURCES] = {}, stop[SOURCES] = {};

  void fill(const int64_t* from, const int64_t* to, int64_t count) {
    std::copy(from, from + count, start);
    std::copy(to, to + count, stop);
  }

  // Bit s: some of first .. last live with source s.
  uint64_t meet(int64_t first, int64_t last) const {
    uint64_t found = 0;
    for (int64_t g = 0; g < SOURCES / LANES; ++g) {
      const __mmask16 from = _mm512_cmplt_epi32_mask(_mm512_load_si512(start + g * LANES), _mm512_set1_epi32(int32_t(last)));
      found |= uint64_t(_mm512_mask_cmpgt_epi32_mask(from, _mm512_load_si512(stop + g * LANES), _mm512_set1_epi32(int32_t(first)))) << (g * LANES);
    }
    return found;
  }
};

#endif

}  // namespace

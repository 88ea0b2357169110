// Exact K nearest tasks inside every environment (all pairs), K <= 14.
//
// One float32 product tile of ROWS x LANES at a time; only column panels at or right of the diagonal are computed, and
// each product is offered to both of its tasks. A task keeps its best K + 2 in registers. Where float32 leaves the order or
// the K-th place open, the candidates (or, failing that, the whole environment) are scored again exactly.
#include "common.h"

namespace {

#if defined(__AVX512F__)
constexpr int LANES = 16, ROWS = 14;
#else
constexpr int LANES = 8, ROWS = 6;
#endif
constexpr int SLOTS = 16;  // of a list, the first K + 2 in use
typedef float Lanes __attribute__((vector_size(LANES * 4), aligned(4)));

struct alignas(64) List {
  float value[SLOTS];
  int32_t row[SLOTS];
};

inline void insert(List& list, float value, int32_t row) {
#if defined(__AVX512F__)
  const __m512 values = _mm512_load_ps(list.value);
  const unsigned place = _mm_popcnt_u32(_mm512_cmp_ps_mask(values, _mm512_set1_ps(value), _CMP_GE_OQ));
  const __mmask16 others = __mmask16(~(1u << place));
  _mm512_store_ps(list.value, _mm512_mask_expand_ps(_mm512_set1_ps(value), others, values));
  _mm512_store_si512(list.row, _mm512_mask_expand_epi32(_mm512_set1_epi32(row), others, _mm512_load_si512(list.row)));
#else
  int place = SLOTS - 1;
  for (; place > 0 && list.value[place - 1] < value; --place) {
    list.value[place] = list.value[place - 1];
    list.row[place] = list.row[place - 1];
  }
  list.value[place] = value;
  list.row[place] = row;
#endif
}

template <int R>
inline void tile(const float* rows, const float* panel, int64_t D, float (*out)[LANES]) {
  Lanes sum[R] = {};
  for (int64_t d = 0; d < D; ++d) {
    const Lanes column = *reinterpret_cast<const Lanes*>(panel + d * LANES);
    for (int r = 0; r < R; ++r) sum[r] += rows[r * D + d] * column;
  }
  for (int r = 0; r < R; ++r) *reinterpret_cast<Lanes*>(out[r]) = sum[r];
}

void any_tile(int R, const float* rows, const float* panel, int64_t D, float (*out)[LANES]) {
  switch (R) {
    case 1: return tile<1>(rows, panel, D, out);
    case 2: return tile<2>(rows, panel, D, out);
    case 3: return tile<3>(rows, panel, D, out);
    case 4: return tile<4>(rows, panel, D, out);
    case 5: return tile<5>(rows, panel, D, out);
    case 6: return tile<6>(rows, panel, D, out);
#if defined(__AVX512F__)
    case 7: return tile<7>(rows, panel, D, out);
    case 8: return tile<8>(rows, panel, D, out);
    case 9: return tile<9>(rows, panel, D, out);
    case 10: return tile<10>(rows, panel, D, out);
    case 11: return tile<11>(rows, panel, D, out);
    case 12: return tile<12>(rows, panel, D, out);
    case 13: return tile<13>(rows, panel, D, out);
    default: return tile<14>(rows, panel, D, out);
#endif
  }
}

void pack(const float* x, int64_t D, int64_t count, float* panel) {
  for (int64_t j = 0; j < LANES; ++j)
    for (int64_t d = 0; d < D; ++d) panel[d * LANES + j] = j < count ? x[j * D + d] : 0.f;
}

// Offer products out[r][l] of rows first + r and columns column + l, each pair right of the diagonal once.
void offer(float (*out)[LANES], int R, int64_t first, int64_t column, int64_t m, int last, std::vector<List>& lists, float* floor) {
  const int64_t count = std::min<int64_t>(LANES, m - column);
  for (int r = 0; r < R; ++r) {
    const int64_t i = first + r;
    const int from = int(std::max<int64_t>(0, i + 1 - column));
    if (from >= count) continue;
#if defined(__AVX512F__)
    const __m512 value = _mm512_loadu_ps(out[r]);
    const __mmask16 valid = __mmask16((0xFFFFu << from) & (0xFFFFu >> (16 - count)));
    unsigned to_row = _mm512_mask_cmp_ps_mask(valid, value, _mm512_set1_ps(floor[i]), _CMP_GT_OQ);
    unsigned to_column = _mm512_mask_cmp_ps_mask(valid, value, _mm512_loadu_ps(floor + column), _CMP_GT_OQ);
    for (; to_row; to_row &= to_row - 1) {
      const int l = __builtin_ctz(to_row);
      if (out[r][l] > floor[i]) {
        insert(lists[i], out[r][l], int32_t(column + l));
        floor[i] = lists[i].value[last];
      }
    }
    for (; to_column; to_column &= to_column - 1) {
      const int l = __builtin_ctz(to_column);
      insert(lists[column + l], out[r][l], int32_t(i));
      floor[column + l] = lists[column + l].value[last];
    }
#else
    for (int l = from; l < count; ++l) {
      const float value = out[r][l];
      if (value > floor[i]) {
        insert(lists[i], value, int32_t(column + l));
        floor[i] = lists[i].value[last];
      }
      if (value > floor[column + l]) {
        insert(lists[column + l], value, int32_t(i));
        floor[column + l] = lists[column + l].value[last];
      }
    }
#endif
  }
}

// Put list i in exact order; true when float32 had left nothing open.
void settle(const float* x, int64_t D, int64_t m, int64_t i, int K, double error, const List& list, std::vector<Candidate>& scratch,
            float* weight, int32_t* row, int32_t start) {
  const int kept = int(std::min<int64_t>(K + 2, m - 1));
  bool open = false;
  for (int s = 0; s + 1 < kept && s < K; ++s) open |= list.value[s] - list.value[s + 1] <= 2 * error;
  scratch.clear();
  bool whole = false;
  if (open || (kept > 0 && list.value[0] >= 1 - error)) {
    for (int s = 0; s < kept; ++s)
      if (list.row[s] >= 0) scratch.push_back({clipped(exact_dot(x + i * D, x + list.row[s] * D, D)), list.row[s]});
    std::sort(scratch.begin(), scratch.end(), better);
    const double unseen = double(list.value[kept - 1]) + error;
    whole = kept < m - 1 && unseen > 0 && (int(scratch.size()) < K || scratch[K - 1].similarity <= unseen);
  } else {
    for (int s = 0; s < kept && s < K; ++s)
      if (list.row[s] >= 0) scratch.push_back({clipped(list.value[s]), list.row[s]});
  }
  if (whole) {
    scratch.clear();
    for (int64_t j = 0; j < m; ++j)
      if (j != i) scratch.push_back({clipped(exact_dot(x + i * D, x + j * D, D)), j});
    const size_t top = std::min<size_t>(K, scratch.size());
    std::partial_sort(scratch.begin(), scratch.begin() + top, scratch.end(), better);
  }
  for (int s = 0; s < K; ++s) {
    const bool real = s < int(scratch.size()) && scratch[s].similarity > 0;
    weight[s] = real ? float(scratch[s].similarity) : 0.f;
    row[s] = real ? start + int32_t(scratch[s].row) : -1;
  }
}

}  // namespace

// x float32 [N, D]; offsets int64 [M + 1]; weight float32 [N, K] and row int32 [N, K] come out, empty slots 0 and -1.
EXPORT void envsched_within(const float* x, int64_t D, const int64_t* offsets, int64_t M, int64_t K, float* weight, int32_t* row,
                            int threads) {
  const double error = float32_error(D);
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> panel(size_t(D) * LANES), floor;
    std::vector<List> lists;
    std::vector<Candidate> scratch;
    float out[ROWS][LANES];
#pragma omp for schedule(dynamic, 16)
    for (int64_t e = 0; e < M; ++e) {
      const int64_t start = offsets[e], m = offsets[e + 1] - start;
      const float* mine = x + start * D;
      lists.resize(m);
      floor.assign(m + LANES, 0.f);  // similarities of 0 and less are no edge
      for (auto& list : lists) {
        std::fill(list.value, list.value + SLOTS, 0.f);
        std::fill(list.row, list.row + SLOTS, -1);
      }
      for (int64_t column = 0; column < m; column += LANES) {
        pack(mine + column * D, D, std::min<int64_t>(LANES, m - column), panel.data());
        const int64_t stop = std::min<int64_t>(m, column + LANES);
        for (int64_t first = 0; first < stop; first += ROWS) {
          const int R = int(std::min<int64_t>(ROWS, stop - first));
          any_tile(R, mine + first * D, panel.data(), D, out);
          offer(out, R, first, column, m, int(K) + 1, lists, floor.data());
        }
      }
      for (int64_t i = 0; i < m; ++i)
        settle(mine, D, m, i, int(K), error, lists[i], scratch, weight + (start + i) * K, row + (start + i) * K, int32_t(start));
    }
  }
}

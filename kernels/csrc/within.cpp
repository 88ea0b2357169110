// Exact K nearest tasks inside every environment (all pairs), K <= 14.
//
// One float32 product tile of ROWS x COLUMNS at a time, each register a partial sum along the features: rows lie as they came, and
// nothing is packed. Only tiles that reach right of the diagonal are computed, and each product is offered to both of its tasks. A
// task keeps its best K + 2 in registers. Where float32 leaves the order or the K-th place open, the candidates (or, failing
// that, the whole environment) are scored again exactly.
#include "lanes.h"

namespace {

#if defined(__AVX512F__)
constexpr int LANES = 16, ROWS = 4;
#else
constexpr int LANES = 8, ROWS = 2;
#endif
constexpr int COLUMNS = 4, PANEL = 16;  // of a tile; tasks offered at a time
constexpr int SLOTS = 16;               // of a list, the first K + 2 in use
typedef float Lanes __attribute__((vector_size(LANES * 4)));

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

// Products of ROWS rows with COLUMNS others; `width` features of each, a multiple of LANES, aligned.
inline void tile(const float* rows, const float* columns, int64_t width, float (*out)[PANEL]) {
  auto load = [](const float* from) {
    Lanes lanes;
    std::memcpy(&lanes, __builtin_assume_aligned(from, sizeof(Lanes)), sizeof lanes);
    return lanes;
  };
  Lanes sum[ROWS][COLUMNS] = {};
  for (int64_t d = 0; d < width; d += LANES) {
    Lanes column[COLUMNS];
#pragma GCC unroll 4
    for (int c = 0; c < COLUMNS; ++c) column[c] = load(columns + c * width + d);
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; ++r) {
      const Lanes row = load(rows + r * width + d);
#pragma GCC unroll 4
      for (int c = 0; c < COLUMNS; ++c) sum[r][c] += row * column[c];
    }
  }
#if defined(__AVX512F__)
  __m512 partial[ROWS * COLUMNS];
  std::memcpy(partial, sum, sizeof sum);
  alignas(64) float dot[ROWS][COLUMNS];
  _mm512_store_ps(dot[0], sum_rows(partial));
  for (int r = 0; r < ROWS; ++r) std::memcpy(out[r], dot[r], sizeof dot[r]);
#else
  for (int r = 0; r < ROWS; ++r)
    for (int c = 0; c < COLUMNS; ++c) {
      float dot = 0;
      for (int l = 0; l < LANES; ++l) dot += sum[r][c][l];
      out[r][c] = dot;
    }
#endif
}

// An environment's rows, padded with zeros to whole tiles and registers.
class Rows {
 public:
  explicit Rows(int64_t D) : width((D + LANES - 1) / LANES * LANES), D_(D) {}

  void take(const float* x, int64_t count) {
    const int64_t line = width / LANES;
    if (int64_t(lines_.size()) < (count + PANEL) * line) lines_.resize((count + PANEL) * line);  // zero beyond D in every row
    for (int64_t i = 0; i < count; ++i) std::memcpy(lines_.data() + i * line, x + i * D_, D_ * sizeof(float));
    std::fill_n(lines_.begin() + count * line, PANEL * line, Line{});
  }

  const float* of(int64_t i) const { return lines_[i * width / LANES].lane; }

  const int64_t width;

 private:
  struct alignas(sizeof(Lanes)) Line {
    float lane[LANES];
  };

  const int64_t D_;
  std::vector<Line> lines_;
};

// Offer products out[r][l] of rows first + r and columns column + l, each pair right of the diagonal once.
void offer(const float (*out)[PANEL], int R, int64_t first, int64_t column, int64_t m, int last, std::vector<List>& lists, float* floor) {
  const int64_t count = std::min<int64_t>(PANEL, m - column);
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

// Write list i in exact order.
void settle(const float* x, int64_t D, int64_t m, int64_t i, int K, double error, const List& list, std::vector<Candidate>& scratch,
            float* weight, int32_t* row, int32_t start) {
  const int kept = int(std::min<int64_t>(K + 2, m - 1));
  bool open = false;
  for (int s = 0; s + 1 < kept && s < K; ++s) open |= list.value[s] - list.value[s + 1] <= 2 * error;
  if (!open && !(kept > 0 && list.value[0] >= 1 - error)) {
    for (int s = 0; s < K; ++s) {
      const bool real = s < kept && list.row[s] >= 0;
      weight[s] = real ? list.value[s] : 0.f;
      row[s] = real ? start + list.row[s] : -1;
    }
    return;
  }
  scratch.clear();
  for (int s = 0; s < kept; ++s)
    if (list.row[s] >= 0) scratch.push_back({clipped(exact_dot(x + i * D, x + list.row[s] * D, D)), list.row[s]});
  std::sort(scratch.begin(), scratch.end(), better);
  const double unseen = double(list.value[kept - 1]) + error;
  const bool whole = kept < m - 1 && unseen > 0 && (int(scratch.size()) < K || scratch[K - 1].similarity <= unseen);
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
    std::vector<float> floor;
    std::vector<List> lists;
    std::vector<Candidate> scratch;
    Rows rows(D);
    alignas(64) float out[ROWS][PANEL] = {};
#pragma omp for schedule(dynamic, 16)
    for (int64_t e = 0; e < M; ++e) {
      const int64_t start = offsets[e], m = offsets[e + 1] - start;
      const float* mine = x + start * D;
      lists.resize(m);
      floor.assign(m + PANEL, 0.f);  // similarities of 0 and less are no edge
      for (auto& list : lists) {
        std::fill(list.value, list.value + SLOTS, 0.f);
        std::fill(list.row, list.row + SLOTS, -1);
      }
      rows.take(mine, m);
      for (int64_t column = 0; column < m; column += PANEL) {
        const int64_t stop = std::min<int64_t>(m, column + PANEL);
        for (int64_t first = 0; first < stop; first += ROWS) {
          for (int64_t c = 0; column + c < stop; c += COLUMNS)
            if (first < column + c + COLUMNS - 1) tile(rows.of(first), rows.of(column + c), rows.width, reinterpret_cast<float(*)[PANEL]>(out[0] + c));
          offer(out, int(std::min<int64_t>(ROWS, stop - first)), first, column, m, int(K) + 1, lists, floor.data());
        }
      }
      for (int64_t i = 0; i < m; ++i)
        settle(mine, D, m, i, int(K), error, lists[i], scratch, weight + (start + i) * K, row + (start + i) * K, int32_t(start));
    }
  }
}

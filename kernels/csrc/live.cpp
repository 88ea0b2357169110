// Lists that follow live evidence: of each task the K sources whose evidence, ranked by likeness, is largest now.
//
// A source lends w = k(s) mass, and lists keep the K largest k(s)^2 mass: by w itself they would hold little but the newest.
// On the scale of the sums (2^(t / h - base)) a mass never falls, so that nobody's rank falls behind when a source is visited:
// offering each visited source to all lists keeps the K best, and nothing has to be looked up again. A slot keeps the fourth
// root of its rank, which is linear in the similarity:
//     across environments  k(s) = max(0, (s - s0) / (1 - s0))^2, s of the int8 codes;   within one  k(s) = s.
// Equal ranks: the lower row first. Letters: N tasks, K slots, S sources.
#include "int8.h"
#include "state.h"

#if defined(__AVX512VNNI__)
namespace {

struct Lists {
  float* root;           // [N, stride] fourth roots, descending, 0 for an empty slot
  int32_t* slot;         // [N, stride] places in the tables of visited tasks, -1 for an empty slot
  float* least;          // [N] last root of each list
  int64_t K;             // <= 16
  const float* table;    // [slots][2] root of the mass and own variance of each visited task
  const int32_t* row;    // [slots]
  float *sums, *peak;
  int64_t relation;
  int64_t stride = K > 8 ? 16 : 8;  // whole registers: masked stores are slow; the lanes from K on mean nothing
};

// The list of one task, in registers while sources are offered to it.
class List {
 public:
  List(const Lists& lists, int64_t task)
      : l_(lists), task_(task), all_(__mmask16((1u << lists.K) - 1)), roots_(_mm512_loadu_ps(lists.root + task * lists.stride)),
        slots_(_mm512_loadu_si512(lists.slot + task * lists.stride)) {}

  void offer(float root, int32_t source) {
    const __m512 offered = _mm512_set1_ps(root);
    const __m512i place_of = _mm512_set1_epi32(source);
    const __mmask16 known = _mm512_mask_cmpeq_epi32_mask(all_, slots_, place_of);
    if (known) {
      roots_ = _mm512_maskz_compress_ps(all_ & ~known, roots_);
      slots_ = _mm512_mask_compress_epi32(_mm512_set1_epi32(-1), all_ & ~known, slots_);
    }
    unsigned place = _mm_popcnt_u32(_mm512_mask_cmp_ps_mask(all_, roots_, offered, _CMP_GE_OQ));
    if (const unsigned equal = _mm512_mask_cmp_ps_mask(all_, roots_, offered, _CMP_EQ_OQ)) place = by_row(equal, place, source);
    if (place >= unsigned(l_.K)) return;
    const __mmask16 others = __mmask16(~(1u << place));
    roots_ = _mm512_mask_expand_ps(offered, others, roots_);
    slots_ = _mm512_mask_expand_epi32(place_of, others, slots_);
    changed_ = true;
  }

  // Store the list, and its task's sums, where it has changed.
  void finish() const {
    if (!changed_) return;
    if (l_.stride == 16) {
      _mm512_storeu_ps(l_.root + task_ * 16, roots_);
      _mm512_storeu_si512(l_.slot + task_ * 16, slots_);
    } else {
      _mm256_storeu_ps(l_.root + task_ * 8, _mm512_castps512_ps256(roots_));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(l_.slot + task_ * 8), _mm512_castsi512_si256(slots_));
    }
    l_.least[task_] = _mm512_cvtss_f32(_mm512_permutexvar_ps(_mm512_set1_epi32(int(l_.K) - 1), roots_));
    const __mmask16 taken = _mm512_mask_cmpge_epi32_mask(all_, slots_, _mm512_setzero_si512());
    const __m512 zero = _mm512_setzero_ps();
    const __m512 mass = _mm512_mask_i32gather_ps(zero, taken, slots_, l_.table, 8), value = _mm512_mask_i32gather_ps(zero, taken, slots_, l_.table + 1, 8);
    const __m512 weight = _mm512_mul_ps(_mm512_mul_ps(roots_, roots_), mass);
    float* sum = l_.sums + task_ * 4;
    sum[2 * l_.relation] = _mm512_mask_reduce_add_ps(taken, _mm512_mul_ps(weight, value));
    sum[2 * l_.relation + 1] = _mm512_mask_reduce_add_ps(taken, weight);
    float& top = l_.peak[task_ / BLOCK_ROWS];
    top = std::max(top, sum[0] + sum[2]);
  }

 private:
  // Among equals, before the first one of a higher row.
  unsigned by_row(unsigned equal, unsigned place, int32_t source) const {
    alignas(64) int32_t slots[16];
    _mm512_store_si512(slots, slots_);
    for (; equal; equal &= equal - 1) {
      const unsigned k = unsigned(__builtin_ctz(equal));
      if (slots[k] < 0 || l_.row[slots[k]] > l_.row[source]) return k;
    }
    return place;
  }

  const Lists& l_;
  const int64_t task_;
  const __mmask16 all_;
  __m512 roots_;
  __m512i slots_;
  bool changed_ = false;
};

struct Offers {
  float slope[ROWS], shift[ROWS];  // root = slope scale_i <x8, y8> + shift
  int32_t begin[ROWS];
};

constexpr int64_t WIDE = GROUPS * LANES, CHUNK = 5 * ROWS;  // tasks of a tile; sources that pass over it together

struct Roots {
  float value[CHUNK][WIDE];  // written for sources with a hit
  uint32_t hits[CHUNK];
};

inline bool live_tile(const uint8_t* packed, const int8_t* queries, int64_t depth, const Offers& o, const float* scales, const float* least,
                      float (*value)[WIDE], uint32_t* found) {
#define BEGIN(r) __m512i left##r = _mm512_set1_epi32(o.begin[r]), right##r = left##r;
  EACH_ROW(BEGIN)
#undef BEGIN
  for (int64_t d = 0; d < depth; ++d) {
    const __m512i a = _mm512_loadu_si512(packed + d * 64), b = _mm512_loadu_si512(packed + (depth + d) * 64);
#define STEP(r)                                          \
  {                                                      \
    int32_t four;                                        \
    std::memcpy(&four, queries + (d * ROWS + r) * 4, 4); \
    const __m512i q = _mm512_set1_epi32(four);           \
    DOT(left##r, a, q);                                  \
    DOT(right##r, b, q);                                 \
  }
    EACH_ROW(STEP)
#undef STEP
  }
  const __m512 a = _mm512_loadu_ps(scales), b = _mm512_loadu_ps(scales + LANES), tiny = _mm512_set1_ps(1e-30f);
  const __m512 low = _mm512_max_ps(tiny, _mm512_loadu_ps(least)), high = _mm512_max_ps(tiny, _mm512_loadu_ps(least + LANES));
  uint32_t any = 0;
#define FINISH(r)                                                                                                             \
  {                                                                                                                           \
    const __m512 slope = _mm512_set1_ps(o.slope[r]), shift = _mm512_set1_ps(o.shift[r]);                                      \
    const __m512 x = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(left##r), a), slope, shift);                            \
    const __m512 y = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(right##r), b), slope, shift);                           \
    found[r] = uint32_t(_mm512_cmp_ps_mask(x, low, _CMP_GE_OQ)) | uint32_t(_mm512_cmp_ps_mask(y, high, _CMP_GE_OQ)) << 16; \
    any |= found[r];                                                                                                       \
    if (found[r]) {                                                                                                        \
      _mm512_storeu_ps(value[r], x);                                                                                      \
      _mm512_storeu_ps(value[r] + LANES, y);                                                                              \
    }                                                                                                                         \
  }
  EACH_ROW(FINISH)
#undef FINISH
  return any != 0;
}

}  // namespace

// Offer sources to all tasks of other environments. packed, scale: as envsched_quantise made them; source (rows) and place
// (in table and row) int64 [S]; mass float64 [S], what they count; start, stop int64 [S] their own environments.
// root, slot [N + 1, stride] and least [N rounded up to 32] are the lists, updated; so are columns 2 and 3 of sums [N][4], and peak.
EXPORT void envsched_live_cross(const uint8_t* packed, const float* scale, int64_t N, int64_t D, const int64_t* source, const int64_t* place,
                                const double* mass, const int64_t* start, const int64_t* stop, int64_t count, double floor,
                                const float* table, const int32_t* row, float* root, int32_t* slot, float* least, int64_t K, float* sums,
                                float* peak, int threads) {
  const Vectors v{nullptr, packed, scale, nullptr, D, (D + 3) / 4 * 4};
  const Lists lists{root, slot, least, K, table, row, sums, peak, 1};
  const int64_t depth = v.D4 / 4, tiles = (count + ROWS - 1) / ROWS, blocks = (N + WIDE - 1) / WIDE;
  std::vector<int8_t> codes(size_t(tiles) * ROWS * v.D4);
  std::vector<Offers> offers(tiles);
  const double gain = 1 / (1 - floor);
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t rows = std::min<int64_t>(ROWS, count - t * ROWS);
    pack_queries(v, source + t * ROWS, rows, codes.data() + t * ROWS * v.D4);
    for (int64_t r = 0; r < ROWS; ++r) {
      const int64_t s = t * ROWS + r;
      const bool real = r < rows;
      const double lift = real ? std::sqrt(std::sqrt(mass[s])) : 0.0;
      offers[t].slope[r] = real ? float(scale[source[s]] * gain * lift) : 0.f;
      offers[t].shift[r] = real ? float(-floor * gain * lift) : -1.f;
      offers[t].begin[r] = 0;
      for (int64_t d = 0; real && d < v.D4; ++d) offers[t].begin[r] -= 128 * v.code(source[s], d);
    }
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t column = block * WIDE;
    Roots out;
    for (int64_t first = 0; first < count; first += CHUNK) {
      const int64_t end = std::min(count, first + CHUNK);
      uint8_t wants[WIDE][CHUNK], number[WIDE] = {};  // sources that reach each task's list
      for (int64_t t = first / ROWS; t * ROWS < end; ++t) {
        const int64_t at = t * ROWS - first;
        if (!live_tile(packed + column * v.D4, codes.data() + t * ROWS * v.D4, depth, offers[t], scale + column, least + column,
                       out.value + at, out.hits + at))
          continue;
        for (int64_t q = at; q < std::min<int64_t>(end - first, at + ROWS); ++q)
          for (uint32_t hits = out.hits[q]; hits; hits &= hits - 1) {
            const int l = __builtin_ctz(hits);
            wants[l][number[l]++] = uint8_t(q);
          }
      }
      for (int64_t l = 0; l < std::min(WIDE, N - column); ++l) {
        if (!number[l]) continue;
        const int64_t i = column + l;
        List list(lists, i);
        for (int n = 0; n < number[l]; ++n) {
          const int64_t q = wants[l][n], s = first + q;
          if (i < start[s] || i >= stop[s]) list.offer(out.value[q][l], int32_t(place[s]));
        }
        list.finish();
      }
    }
  }
}

// The same inside environments: exact similarities of x float32 [N, D], a source is offered to the other rows of start .. stop.
EXPORT void envsched_live_within(const float* x, int64_t D, const int64_t* source, const int64_t* place, const double* mass,
                                 const int64_t* start, const int64_t* stop, int64_t count, const float* table, const int32_t* row,
                                 float* root, int32_t* slot, float* least, int64_t K, float* sums, float* peak) {
  const Lists lists{root, slot, least, K, table, row, sums, peak, 0};
  for (int64_t s = 0; s < count; ++s)
    for (int64_t i = start[s]; i < stop[s]; ++i) {
      if (i == source[s]) continue;
      const double similarity = clipped(exact_dot(x + i * D, x + source[s] * D, D));
      if (!(similarity > 0)) continue;
      List list(lists, i);
      list.offer(float(std::sqrt(std::sqrt(mass[s]) * similarity)), int32_t(place[s]));
      list.finish();
    }
}
#endif

// Lists that follow live evidence: of each task the K sources whose evidence, ranked by likeness, is largest now.
//
// A source lends w = k(s) mass, and lists keep the K largest k(s)^2 mass: by w itself they would hold little but the newest.
// On the scale of the sums (2^(t / h - base)) a mass never falls, so that nobody's rank falls behind when a source is visited:
// offering each visited source to all lists keeps the K best, and nothing has to be looked up again. A slot keeps the fourth
// root of its rank, which is linear in the similarity:
//     across environments  k(s) = max(0, (s - s0) / (1 - s0))^2, s of the int8 codes;   within one  k(s) = s.
// Residuals don't fade: all masses are 1, lists keep the likest sources, and what a source tells may change while its rank stays.
// Equal ranks: the lower row first. Letters: N tasks, K slots, S sources.
#include "int8.h"
#include "state.h"

#if defined(__AVX512VNNI__)
namespace {

struct Lists {
  float* list;         // [N][2][stride]: fourth roots, descending, 0 for an empty slot; places in the tables as int32, -1 for one
  float* least;        // [N] last root of each list
  int64_t K;           // <= 16; the slots from K on mean nothing
  const float* table;  // [slots][2] of each visited task: its mass's root times its own variance, and alone
  const int32_t* row;  // [slots]
  float *sums, *peak;
  int64_t relation;
  float shrinkage;  // of residuals, 0 where the sums hold none
};

// The lists in registers, without masks in memory, which are slow. Q: K rounded up to a multiple of 4, over 4.
template <int Q>
class Keeper {
 public:
  explicit Keeper(const Lists& lists) : l_(lists), all_(__mmask16((1u << lists.K) - 1)) {}

  const float* list(int64_t task) const { return roots_of(task); }

  // A source competes for a slot of the task's list.
  void offer(int64_t task, float root, int32_t source) const {
    float* const list = roots_of(task);
    const __m512 offered = _mm512_set1_ps(root);
    const __m512i place_of = _mm512_set1_epi32(source);
    __m512 roots = load(list);
    __m512i slots = _mm512_castps_si512(load(list + STRIDE));
    if (const __mmask16 known = _mm512_mask_cmpeq_epi32_mask(all_, slots, place_of)) {
      roots = _mm512_maskz_compress_ps(all_ & ~known, roots);
      slots = _mm512_mask_compress_epi32(_mm512_set1_epi32(-1), all_ & ~known, slots);
    }
    unsigned place = _mm_popcnt_u32(_mm512_mask_cmp_ps_mask(all_, roots, offered, _CMP_GE_OQ));
    if (const unsigned equal = _mm512_mask_cmp_ps_mask(all_, roots, offered, _CMP_EQ_OQ)) place = by_row(slots, equal, place, source);
    const __mmask16 others = __mmask16(~(1u << place));  // all, or a lane without meaning, where the list is full of better ones
    store(list, _mm512_mask_expand_ps(offered, others, roots));
    store(list + STRIDE, _mm512_castsi512_ps(_mm512_mask_expand_epi32(place_of, others, slots)));
  }

  // What the list lends, after it has changed.
  void settle(int64_t task) const {
    const float* const list = roots_of(task);
    l_.least[task] = list[l_.K - 1];
    const __m512 roots = load(list), squares = _mm512_maskz_mul_ps(all_, roots, roots);
    const __m512i slots = _mm512_max_epi32(_mm512_castps_si512(load(list + STRIDE)), _mm512_setzero_si512());
    const __m512i pairs = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    __m512 sum = _mm512_mul_ps(_mm512_permutexvar_ps(pairs, squares), evidence(_mm512_castsi512_si256(slots), uint8_t(all_)));
    if (Q > 2)
      sum = _mm512_fmadd_ps(_mm512_permutexvar_ps(_mm512_add_epi32(pairs, _mm512_set1_epi32(8)), squares),
                            evidence(_mm512_extracti64x4_epi64(slots, 1), uint8_t(all_ >> 8)), sum);
    const __m256 four = _mm256_add_ps(_mm512_castps512_ps256(sum), _mm512_extractf32x8_ps(sum, 1));
    const __m128 two = _mm_add_ps(_mm256_castps256_ps128(four), _mm256_extractf128_ps(four, 1));
    float* of = l_.sums + task * 4;
    _mm_storel_pi(reinterpret_cast<__m64*>(of + 2 * l_.relation), _mm_add_ps(two, _mm_movehl_ps(two, two)));
    float& top = l_.peak[task / BLOCK_ROWS];
    top = std::max(top, height(of, l_.shrinkage));
  }

 private:
  static constexpr int64_t STRIDE = 4 * Q;

  float* roots_of(int64_t task) const { return l_.list + task * 2 * STRIDE; }

  __m512 evidence(__m256i slots, __mmask8 taken) const {
    return _mm512_castpd_ps(_mm512_mask_i32gather_pd(_mm512_setzero_pd(), taken, slots, l_.table, 8));
  }

  // Loads as wide as the stores: what was just stored needn't reach the cache first.
  static __m512 load(const float* from) {
    if (Q == 1) return _mm512_castps128_ps512(_mm_loadu_ps(from));
    if (Q == 4) return _mm512_loadu_ps(from);
    const __m512 lanes = _mm512_castps256_ps512(_mm256_loadu_ps(from));
    return Q == 3 ? _mm512_insertf32x4(lanes, _mm_loadu_ps(from + 8), 2) : lanes;
  }

  static void store(float* to, __m512 lanes) {
    if (Q == 4) return _mm512_storeu_ps(to, lanes);
    if (Q == 1) return _mm_storeu_ps(to, _mm512_castps512_ps128(lanes));
    _mm256_storeu_ps(to, _mm512_castps512_ps256(lanes));
    if (Q == 3) _mm_storeu_ps(to + 8, _mm512_extractf32x4_ps(lanes, 2));
  }

  // Among equals, before the first one of a higher row.
  unsigned by_row(__m512i held, unsigned equal, unsigned place, int32_t source) const {
    alignas(64) int32_t slots[16];
    _mm512_store_si512(slots, held);
    for (; equal; equal &= equal - 1) {
      const unsigned k = unsigned(__builtin_ctz(equal));
      if (slots[k] < 0 || l_.row[slots[k]] > l_.row[source]) return k;
    }
    return place;
  }

  const Lists l_;
  const __mmask16 all_;
};

struct Batch {
  Bounds roots;  // root = slope scale_i <x8, y8> + shift
  int32_t place[SOURCES] = {};
  Homes homes;
};

constexpr int64_t BLOCK = 4 * TASKS;  // tasks whose hits are found, and whose lists are fetched, before the ones before them are offered

// Pairs of a block and a batch that reach the task's list.
struct Hits {
  int64_t column = 0, count = 0, num_tasks = 0;
  const Batch* batch = nullptr;
  int32_t task[BLOCK];  // those with a hit
  uint16_t pair[BLOCK * SOURCES + 4];  // task * SOURCES + source, ascending
  float root[BLOCK * SOURCES + 4];
};

class Pass {
 public:
  Pass(const Vectors& v, int64_t N, const float* least) : v_(v), N_(N), least_(least) {}

  void find(int64_t column, const Panel& panel, const Batch& batch, Hits& hits) {
    hits.column = column, hits.batch = &batch, hits.count = hits.num_tasks = 0;
    for (int64_t t = 0; t < BLOCK && column + t < N_; t += TASKS) {
      fetch_ahead(v_, column + t);
      multiply(v_.of(column + t), v_.D4, panel, products_);
      float low[TASKS];
      for (int64_t i = 0; i < TASKS; ++i) low[i] = std::max(1e-30f, least_[column + t + i]);
      reached_.compare(products_, panel.groups, v_.scale + column + t, batch.roots, low);
      list(t, batch, hits);
    }
  }

 private:
  void list(int64_t first, const Batch& batch, Hits& hits) {
    const int64_t column = hits.column + first, last = std::min(N_, column + TASKS);
    const uint64_t some = batch.homes.meet(column, last);
    for (int64_t t = 0; t < last - column; ++t) {
      uint64_t found = reached_.by(t);
      if (__builtin_expect(some != 0, 0)) found &= ~batch.homes.meet(column + t, column + t + 1);
      hits.task[hits.num_tasks] = int32_t(first + t);
      hits.num_tasks += found != 0;
      // Mostly none, one or two: written without asking.
      const int64_t count = __builtin_popcountll(found);
      const float scale = v_.scale[column + t];
      for (int64_t n = hits.count; n < hits.count + 2; ++n, found &= found - 1) write(hits, n, first, t, found, scale, batch);
      if (__builtin_expect(count > 2, 0))
        for (int64_t n = hits.count + 2; found; ++n, found &= found - 1) write(hits, n, first, t, found, scale, batch);
      hits.count += count;
    }
  }

  void write(Hits& hits, int64_t n, int64_t first, int64_t t, uint64_t found, float scale, const Batch& batch) const {
    const int64_t s = _tzcnt_u64(found) % SOURCES;
    hits.pair[n] = uint16_t((first + t) * SOURCES + s);
    hits.root[n] = bound(products_, t, s, scale, batch.roots);
  }

  const Vectors& v_;
  const int64_t N_;
  const float* least_;
  Products products_;
  Reached reached_;
};

template <int Q>
void fetch(const Keeper<Q>& keeper, const Hits& hits) {
  for (int64_t n = 0; n < hits.num_tasks; ++n) {
    const char* list = reinterpret_cast<const char*>(keeper.list(hits.column + hits.task[n]));
    for (int64_t at = 0; at < 32 * Q; at += 64) __builtin_prefetch(list + at, 1);
    __builtin_prefetch(list + 32 * Q - 1, 1);
  }
}

template <int Q>
void take(const Keeper<Q>& keeper, const Hits& hits) {
  for (int64_t n = 0; n < hits.count; ++n)
    keeper.offer(hits.column + hits.pair[n] / SOURCES, hits.root[n], hits.batch->place[hits.pair[n] % SOURCES]);
  for (int64_t n = 0; n < hits.num_tasks; ++n) keeper.settle(hits.column + hits.task[n]);
}

template <int Q>
void offer_all(const Vectors& v, int64_t N, const std::vector<Panel>& panels, const std::vector<Batch>& batches, const Lists& lists, int threads) {
#pragma omp parallel num_threads(threads)
  {
    const Registers registers;
    const Keeper<Q> keeper(lists);
    Pass pass(v, N, lists.least);
    Hits found[2];
    int now = 0;
#pragma omp for schedule(static) nowait
    for (int64_t column = 0; column < N; column += BLOCK)
      for (size_t p = 0; p < panels.size(); ++p, now ^= 1) {
        pass.find(column, panels[p], batches[p], found[now]);
        fetch(keeper, found[now]);
        take(keeper, found[now ^ 1]);
      }
    take(keeper, found[now ^ 1]);
  }
}

void offer_all(const Vectors& v, int64_t N, const std::vector<Panel>& panels, const std::vector<Batch>& batches, const Lists& lists, int threads) {
  switch ((lists.K + 3) / 4) {
    case 1: return offer_all<1>(v, N, panels, batches, lists, threads);
    case 2: return offer_all<2>(v, N, panels, batches, lists, threads);
    case 3: return offer_all<3>(v, N, panels, batches, lists, threads);
    default: return offer_all<4>(v, N, panels, batches, lists, threads);
  }
}

template <int Q>
void settle_all(int64_t N, const Lists& lists, int threads) {
  constexpr int64_t AHEAD = 8;
  const Keeper<Q> keeper(lists);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t column = 0; column < N; column += BLOCK)  // whole blocks of peaks
    for (int64_t task = column; task < std::min(N, column + BLOCK); ++task) {
      const char* ahead = reinterpret_cast<const char*>(keeper.list(std::min(N - 1, task + AHEAD)));
      for (int64_t at = 0; at < 32 * Q; at += 64) __builtin_prefetch(ahead + at);
      keeper.settle(task);
    }
}

template <int Q>
void offer_within(const float* x, int64_t D, const int64_t* source, const int64_t* place, const double* mass, const int64_t* start,
                  const int64_t* stop, int64_t count, const Lists& lists) {
  const Keeper<Q> keeper(lists);
  for (int64_t s = 0; s < count; ++s)
    for (int64_t i = start[s]; i < stop[s]; ++i) {
      if (i == source[s]) continue;
      const double similarity = clipped(exact_dot(x + i * D, x + source[s] * D, D));
      const float root = float(std::sqrt(std::sqrt(mass[s]) * similarity));
      if (!(root > 0 && root >= lists.least[i])) continue;
      keeper.offer(i, root, int32_t(place[s]));
      keeper.settle(i);
    }
}

}  // namespace

// Offer sources to all tasks of other environments. codes, scale: as envsched_quantise made them; source (rows) and place
// (in table and row) int64 [S]; mass float64 [S], what they count; start, stop int64 [S] their own environments.
// list [N, 2, stride] and least [N rounded up to TASKS] are the lists, updated; so are columns 2 and 3 of sums [N][4], and peak.
EXPORT void envsched_live_cross(const uint8_t* codes, const float* scale, int64_t N, int64_t D, const int64_t* source, const int64_t* place,
                                const double* mass, const int64_t* start, const int64_t* stop, int64_t count, double floor,
                                const float* table, const int32_t* row, float* list, float* least, int64_t K, float* sums, float* peak,
                                double shrinkage, int threads) {
  const Vectors v{nullptr, codes, scale, nullptr, D, (D + 3) / 4 * 4};
  const std::vector<Panel> panels = panels_of(v, source, count);
  std::vector<Batch> batches(panels.size());
  const double gain = 1 / (1 - floor);
  for (int64_t s = 0; s < count; ++s) {
    Batch& batch = batches[s / SOURCES];
    const double lift = std::sqrt(std::sqrt(mass[s]));
    batch.roots.slope[s % SOURCES] = float(scale[source[s]] * gain * lift);
    batch.roots.shift[s % SOURCES] = float(-floor * gain * lift);
    batch.place[s % SOURCES] = int32_t(place[s]);
  }
  for (size_t p = 0; p < panels.size(); ++p) batches[p].homes.fill(start + p * SOURCES, stop + p * SOURCES, panels[p].count);
  offer_all(v, N, panels, batches, {list, least, K, table, row, sums, peak, 1, float(shrinkage)}, threads);
}

// Columns 2 relation and 2 relation + 1 of sums [N][4] as the lists have them, after the table has changed; peak keeps up.
EXPORT void envsched_live_settle(int64_t N, int64_t relation, const float* table, const int32_t* row, float* list, float* least, int64_t K,
                                 float* sums, float* peak, double shrinkage, int threads) {
  const Lists lists{list, least, K, table, row, sums, peak, relation, float(shrinkage)};
  switch ((K + 3) / 4) {
    case 1: return settle_all<1>(N, lists, threads);
    case 2: return settle_all<2>(N, lists, threads);
    case 3: return settle_all<3>(N, lists, threads);
    default: return settle_all<4>(N, lists, threads);
  }
}

// envsched_live_cross inside environments: exact similarities of x float32 [N, D], a source is offered to the other rows of start .. stop.
EXPORT void envsched_live_within(const float* x, int64_t D, const int64_t* source, const int64_t* place, const double* mass,
                                 const int64_t* start, const int64_t* stop, int64_t count, const float* table, const int32_t* row,
                                 float* list, float* least, int64_t K, float* sums, float* peak, double shrinkage) {
  const Lists lists{list, least, K, table, row, sums, peak, 0, float(shrinkage)};
  switch ((K + 3) / 4) {
    case 1: return offer_within<1>(x, D, source, place, mass, start, stop, count, lists);
    case 2: return offer_within<2>(x, D, source, place, mass, start, stop, count, lists);
    case 3: return offer_within<3>(x, D, source, place, mass, start, stop, count, lists);
    default: return offer_within<4>(x, D, source, place, mass, start, stop, count, lists);
  }
}
#endif

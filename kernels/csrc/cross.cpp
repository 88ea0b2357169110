// Exact K nearest tasks of other environments: an int8 sieve with a certificate, then exact scores.
//
// x ~ scale_x x8 with x8 in [-127, 127] and residual r_x = |x - scale_x x8|. For unit rows
//     <x, y>  <=  scale_x scale_y <x8, y8> + r_x + (1 + r_x) r_y,
// so a pair whose right side is below the K-th best exact similarity found so far can't be a neighbour. What passes the
// sieve is buffered, scored exactly a few at a time (best int8 products first), and raises the bar. Nothing is approximate.
#include "int8.h"

namespace {

constexpr int64_t BLOCK = 1024;  // sources whose codes stay in the L2 cache while queries pass over them
constexpr int BUFFER = 192;      // candidates of a query before the bar is raised

struct Held {
  float upper;  // bound of the similarity
  int32_t row;
};

struct Query {
  std::vector<Held> held;
  std::vector<Candidate> best;  // exact, in order, at most K
  float bar;                    // candidates below can't enter
};

void take(Query& query, const Candidate& candidate, int K) {
  auto& best = query.best;
  if (int(best.size()) == K && !better(candidate, best.back())) return;
  best.insert(std::upper_bound(best.begin(), best.end(), candidate, better), candidate);
  if (int(best.size()) > K) best.pop_back();
}

// Score the most promising half-list exactly, raise the bar, drop what fell below it; all: score whatever may still enter.
void raise(Query& query, const Vectors& v, int64_t target, int K, bool all) {
  auto& held = query.held;
  size_t count = all ? held.size() : std::min<size_t>(held.size(), 2 * K);
  if (count < held.size())
    std::nth_element(held.begin(), held.begin() + count, held.end(), [](const Held& a, const Held& b) { return a.upper > b.upper; });
  for (size_t h = 0; h < count; ++h)
    for (int64_t d = 0; d < v.D; d += 16) __builtin_prefetch(v.x + int64_t(held[h].row) * v.D + d);
  for (size_t h = 0; h < count; ++h) {
    if (held[h].upper < query.bar) continue;
    const double similarity = clipped(exact_dot(v.x + target * v.D, v.x + int64_t(held[h].row) * v.D, v.D));
    if (similarity > 0) take(query, {similarity, held[h].row}, K);
    if (int(query.best.size()) == K) query.bar = std::max(query.bar, std::nextafterf(float(query.best.back().similarity), 0.f));
  }
  const float bar = query.bar;
  held.erase(held.begin(), held.begin() + count);
  held.erase(std::remove_if(held.begin(), held.end(), [bar](const Held& h) { return h.upper < bar; }), held.end());
}

#if defined(__AVX512VNNI__)
struct Tile {
  float likeness[ROWS][GROUPS * LANES];  // scale_y <x8, y8>; written for rows with a hit
  uint32_t hits[ROWS];                   // lanes that reach the row's threshold
};

// start: -128 sum x8, undoes the shift of the sources to unsigned. Returns whether any lane hit.
inline bool tile(const uint8_t* packed, const int8_t* queries, int64_t depth, const int32_t* start, const float* threshold,
                 const float* scales, Tile& out) {
#define BEGIN(r) __m512i left##r = _mm512_set1_epi32(start[r]), right##r = left##r;
  EACH_ROW(BEGIN)
#undef BEGIN
  for (int64_t d = 0; d < depth; ++d) {
    const __m512i a = _mm512_loadu_si512(packed + d * 64), b = _mm512_loadu_si512(packed + (depth + d) * 64);
#define STEP(r)                                                  \
  {                                                              \
    int32_t four;                                                \
    std::memcpy(&four, queries + (d * ROWS + r) * 4, 4);         \
    const __m512i q = _mm512_set1_epi32(four);                   \
    DOT(left##r, a, q);                                          \
    DOT(right##r, b, q);                                         \
  }
    EACH_ROW(STEP)
#undef STEP
  }
  const __m512 a = _mm512_loadu_ps(scales), b = _mm512_loadu_ps(scales + LANES);
  bool any = false;
#define FINISH(r)                                                                                                            \
  {                                                                                                                          \
    const __m512 bar = _mm512_set1_ps(threshold[r]);                                                                         \
    const __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(left##r), a), y = _mm512_mul_ps(_mm512_cvtepi32_ps(right##r), b);      \
    out.hits[r] = uint32_t(_mm512_cmp_ps_mask(x, bar, _CMP_GE_OQ)) | uint32_t(_mm512_cmp_ps_mask(y, bar, _CMP_GE_OQ)) << 16; \
    if (__builtin_expect(out.hits[r] != 0, 0)) {                                                                             \
      _mm512_storeu_ps(out.likeness[r], x);                                                                                  \
      _mm512_storeu_ps(out.likeness[r] + LANES, y);                                                                          \
      any = true;                                                                                                            \
    }                                                                                                                        \
  }
  EACH_ROW(FINISH)
#undef FINISH
  return any;
}
#endif

}  // namespace

// 1 when this build has the int8 instructions that the op is made of.
EXPORT int envsched_has_int8() {
#if defined(__AVX512VNNI__)
  return 1;
#else
  return 0;
#endif
}

// x float32 [N, D] -> packed uint8 [P * D4], scale and residual float32 [P], P = N rounded up to 32, D4 = D rounded up to 4.
EXPORT void envsched_quantise(const float* x, int64_t N, int64_t D, uint8_t* packed, float* scale, float* residual, int threads) {
  const int64_t D4 = (D + 3) / 4 * 4, padded = (N + LANES * GROUPS - 1) / (LANES * GROUPS) * (LANES * GROUPS);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < padded; ++i) {
    float largest = 0.f;
    for (int64_t d = 0; i < N && d < D; ++d) largest = std::max(largest, std::fabs(x[i * D + d]));
    const float step = largest > 0 ? largest / 127.f : 1.f;
    double square = 0;
    for (int64_t d = 0; d < D4; ++d) {
      const float value = i < N && d < D ? x[i * D + d] : 0.f;
      const float rounded = std::nearbyint(value / step);
      packed[((i / LANES * D4 / 4 + d / 4) * LANES + i % LANES) * 4 + d % 4] = uint8_t(int(rounded) + 128);
      const double rest = double(value) - double(step) * rounded;
      square += rest * rest;
    }
    scale[i] = i < N ? step : 0.f;
    residual[i] = i < N ? float(std::sqrt(square) * (1 + 1e-6) + 1e-7) : 0.f;
  }
}

#if defined(__AVX512VNNI__)
namespace {

constexpr int64_t CHUNK = 20 * ROWS;  // queries that pass over a block of sources together

// One chunk of queries against all sources.
void search(const Vectors& v, int64_t N, const std::vector<float>& worst_of, const int64_t* start, const int64_t* stop, const int64_t* targets, int64_t count,
            int K, double* weight, int64_t* row) {
  const int64_t depth = v.D4 / 4, groups = (N + LANES * GROUPS - 1) / (LANES * GROUPS) * GROUPS, padded = (count + ROWS - 1) / ROWS * ROWS;
  std::vector<Query> queries(padded);
  std::vector<int8_t> codes(padded * v.D4);
  std::vector<int32_t> begin(padded, 0);
  std::vector<float> slack(padded), threshold(padded, INFINITY);
  for (int64_t first = 0; first < padded; first += ROWS)
    pack_queries(v, targets + first, std::min<int64_t>(ROWS, count - first), codes.data() + first * v.D4);
  for (int64_t q = 0; q < count; ++q) {
    queries[q].held.reserve(BUFFER + GROUPS * LANES);
    queries[q].bar = 1e-30f;
    for (int64_t d = 0; d < v.D4; ++d) begin[q] -= 128 * v.code(targets[q], d);
  }
  Tile out;
  for (int64_t block = 0; block < groups; block += BLOCK / LANES) {
    const float worst = worst_of[block * LANES / BLOCK];
    for (int64_t q = 0; q < count; ++q) {
      const float rest = v.residual[targets[q]];
      slack[q] = (rest + (1.0001f + rest) * worst) * 1.0001f + 1e-6f;
      threshold[q] = (queries[q].bar - slack[q]) / v.scale[targets[q]];
    }
    const int64_t end = std::min(groups, block + BLOCK / LANES);
    for (int64_t first = 0; first < count; first += ROWS)
      for (int64_t g = block; g < end; g += GROUPS) {
        if (!tile(v.packed + g * LANES * v.D4, codes.data() + first * v.D4, depth, begin.data() + first,
                  threshold.data() + first, v.scale + g * LANES, out))
          continue;
        for (int64_t q = first; q < std::min(count, first + ROWS); ++q) {
          Query& query = queries[q];
          const int64_t target = targets[q];
          for (uint32_t hits = out.hits[q - first]; hits; hits &= hits - 1) {
            const int l = __builtin_ctz(hits);
            const int64_t j = g * LANES + l;
            if (j >= N || (j >= start[target] && j < stop[target])) continue;
            query.held.push_back({out.likeness[q - first][l] * v.scale[target] + slack[q], int32_t(j)});
          }
          if (int(query.held.size()) < BUFFER) continue;
          raise(query, v, target, K, false);
          if (int(query.held.size()) > BUFFER * 3 / 4) raise(query, v, target, K, true);
          threshold[q] = (query.bar - slack[q]) / v.scale[target];
        }
      }
  }
  for (int64_t q = 0; q < count; ++q) {
    raise(queries[q], v, targets[q], K, true);
    const auto& best = queries[q].best;
    for (int64_t s = 0; s < K; ++s) {
      const bool real = s < int64_t(best.size());
      weight[q * K + s] = real ? best[s].similarity : 0.0;
      row[q * K + s] = real ? best[s].row : -1;
    }
  }
}

}  // namespace

// Lists of the tasks `targets` [T]: weight float64 [T, K], row int64 [T, K]; empty slots 0 and -1.
// start, stop int64 [N]: the range of rows of each task's own environment.
// packed, scale, residual: as envsched_quantise made them.
EXPORT void envsched_cross(const float* x, const uint8_t* packed, const float* scale, const float* residual, int64_t N, int64_t D,
                           const int64_t* start, const int64_t* stop, const int64_t* targets, int64_t T, int64_t K, double* weight,
                           int64_t* row, int threads) {
  const Vectors v{x, packed, scale, residual, D, (D + 3) / 4 * 4};
  std::vector<float> worst(N / BLOCK + 1, 0.f);
  for (int64_t j = 0; j < N; ++j) worst[j / BLOCK] = std::max(worst[j / BLOCK], residual[j]);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (int64_t chunk = 0; chunk < T; chunk += CHUNK)
    search(v, N, worst, start, stop, targets + chunk, std::min(CHUNK, T - chunk), int(K), weight + chunk * K, row + chunk * K);
}
#endif

// Exact K nearest tasks of other environments: an int8 sieve with a certificate, then exact scores.
//
// x ~ scale_x x8 with x8 in [-127, 127] and residual r_x = |x - scale_x x8|. For unit rows
//     <x, y>  <=  scale_x scale_y <x8, y8> + r_x + (1 + r_x) r_y,
// so a pair whose right side is below the K-th best exact similarity found so far can't be a neighbour. What passes the
// sieve is buffered, scored exactly a few at a time (best int8 products first), and raises the bar. Nothing is approximate.
#include "int8.h"

namespace {

constexpr int64_t BLOCK = 1024;  // tasks whose codes stay in the L2 cache while queries pass over them
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

}  // namespace

// 1 when this build has the int8 instructions that the op is made of.
EXPORT int envsched_has_int8() {
#if defined(__AVX512VNNI__)
  return 1;
#else
  return 0;
#endif
}

// x float32 [N, D] -> codes uint8 [P, D4], scale and residual float32 [P], P = N rounded up to TASKS, D4 = D rounded up to 4.
EXPORT void envsched_quantise(const float* x, int64_t N, int64_t D, uint8_t* codes, float* scale, float* residual, int threads) {
  const int64_t D4 = (D + 3) / 4 * 4, padded = (N + TASKS - 1) / TASKS * TASKS;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < padded; ++i) {
    float largest = 0.f;
    for (int64_t d = 0; i < N && d < D; ++d) largest = std::max(largest, std::fabs(x[i * D + d]));
    const float step = largest > 0 ? largest / 127.f : 1.f;
    double square = 0;
    for (int64_t d = 0; d < D4; ++d) {
      const float value = i < N && d < D ? x[i * D + d] : 0.f;
      const float rounded = std::nearbyint(value / step);
      codes[i * D4 + d] = uint8_t(int(rounded) + 128);
      const double rest = double(value) - double(step) * rounded;
      square += rest * rest;
    }
    scale[i] = i < N ? step : 0.f;
    residual[i] = i < N ? float(std::sqrt(square) * (1 + 1e-6) + 1e-7) : 0.f;
  }
}

#if defined(__AVX512VNNI__)
namespace {

constexpr int64_t CHUNK = 5 * SOURCES;  // queries that pass over a block of tasks together

// One chunk of queries against all tasks.
void search(const Vectors& v, int64_t N, const std::vector<float>& worst_of, const int64_t* start, const int64_t* stop, const int64_t* targets, int64_t count,
            int K, double* weight, int64_t* row) {
  const Registers registers;
  const std::vector<Panel> panels = panels_of(v, targets, count);
  std::vector<Query> queries(count);
  std::vector<float> slack(count);
  std::vector<Bounds> bounds(panels.size());  // of the similarity, over the bar
  for (Query& query : queries) {
    query.held.reserve(BUFFER + 1);
    query.bar = 1e-30f;
  }
  for (int64_t q = 0; q < count; ++q) bounds[q / SOURCES].slope[q % SOURCES] = v.scale[targets[q]];
  const float low[TASKS] = {};
  Products products;
  Reached reached;
  for (int64_t block = 0; block < N; block += BLOCK) {
    const float worst = worst_of[block / BLOCK];
    for (int64_t q = 0; q < count; ++q) {
      const float rest = v.residual[targets[q]];
      slack[q] = (rest + (1.0001f + rest) * worst) * 1.0001f + 1e-6f;
      bounds[q / SOURCES].shift[q % SOURCES] = slack[q] - queries[q].bar;
    }
    for (size_t p = 0; p < panels.size(); ++p)
      for (int64_t column = block; column < std::min(N, block + BLOCK); column += TASKS) {
        multiply(v.of(column), v.D4, panels[p], products);
        reached.compare(products, panels[p].groups, v.scale + column, bounds[p], low);
        for (uint32_t tasks = reached.tasks(); tasks; tasks &= tasks - 1) {
          const int64_t t = __builtin_ctz(tasks), j = column + t;
          if (j >= N) break;
          for (uint64_t found = reached.by(t); found; found &= found - 1) {
            const int64_t s = __builtin_ctzll(found), q = p * SOURCES + s, target = targets[q];
            if (j >= start[target] && j < stop[target]) continue;
            Query& query = queries[q];
            query.held.push_back({bound(products, t, s, v.scale[j], bounds[p]) + query.bar, int32_t(j)});
            if (int(query.held.size()) < BUFFER) continue;
            raise(query, v, target, K, false);
            if (int(query.held.size()) > BUFFER * 3 / 4) raise(query, v, target, K, true);
            bounds[p].shift[s] = slack[q] - query.bar;
          }
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
// codes, scale, residual: as envsched_quantise made them.
EXPORT void envsched_cross(const float* x, const uint8_t* codes, const float* scale, const float* residual, int64_t N, int64_t D,
                           const int64_t* start, const int64_t* stop, const int64_t* targets, int64_t T, int64_t K, double* weight,
                           int64_t* row, int threads) {
  const Vectors v{x, codes, scale, residual, D, (D + 3) / 4 * 4};
  std::vector<float> worst(N / BLOCK + 1, 0.f);
  for (int64_t j = 0; j < N; ++j) worst[j / BLOCK] = std::max(worst[j / BLOCK], residual[j]);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (int64_t chunk = 0; chunk < T; chunk += CHUNK)
    search(v, N, worst, start, stop, targets + chunk, std::min(CHUNK, T - chunk), int(K), weight + chunk * K, row + chunk * K);
}
#endif

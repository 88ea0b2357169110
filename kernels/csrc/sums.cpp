// Maintained sums: what each task's neighbours say, kept up to date by scattering only what changed.
#include "pairs.h"
#include "state.h"

// Reverse a list of neighbours row [N, K] (-1: none) with weight [N, K] into CSR by source:
// pointer int64 [N + 1], target int32 [E], out float32 [E], each source's targets ascending.
EXPORT void envsched_reverse(const int32_t* row, const float* weight, int64_t N, int64_t K, int64_t* pointer, int32_t* target, float* out) {
  std::fill(pointer, pointer + N + 1, 0);
  for (int64_t e = 0; e < N * K; ++e)
    if (row[e] >= 0) ++pointer[row[e] + 1];
  for (int64_t j = 0; j < N; ++j) pointer[j + 1] += pointer[j];
  std::vector<int64_t> next(pointer, pointer + N);
  for (int64_t e = 0; e < N * K; ++e) {
    if (row[e] < 0) continue;
    const int64_t place = next[row[e]]++;
    target[place] = int32_t(e / K);
    out[place] = weight[e];
  }
}

// sums[target][2 relation, 2 relation + 1] += weight * (value, mass) for every target of every source; peak keeps up; shrinkage: of
// residuals, 0 where the sums hold none.
// Lists and sums lie anywhere in memory: their lines are asked for long before they are used.
EXPORT int64_t envsched_scatter(float* sums, float* peak, const int64_t* pointer, const int32_t* target, const float* weight, int64_t relation,
                       const int64_t* source, const double* mass, const double* value, int64_t count, double shrinkage) {
  constexpr int64_t AHEAD = 6, LINE = 16;  // sources between a prefetch and its use; 4-byte values in a cache line
  for (int64_t s = 0; s < count; ++s) __builtin_prefetch(pointer + source[s]);
  for (int64_t s = 0; s < count; ++s)
    for (int64_t p = pointer[source[s]]; p < pointer[source[s] + 1] + LINE - 1; p += LINE) {
      __builtin_prefetch(target + p);
      __builtin_prefetch(weight + p);
    }
  auto ask = [&](int64_t s) {
    if (s >= count) return;
    for (int64_t p = pointer[source[s]]; p < pointer[source[s] + 1]; ++p) {
      __builtin_prefetch(sums + int64_t(target[p]) * 4, 1);
      __builtin_prefetch(peak + target[p] / BLOCK_ROWS, 1);
    }
  };
  for (int64_t s = 0; s < AHEAD; ++s) ask(s);
  int64_t edges = 0;
  for (int64_t s = 0; s < count; ++s) {
    ask(s + AHEAD);
    const int64_t begin = pointer[source[s]], end = pointer[source[s] + 1];
    const float m = float(mass[s]), v = float(value[s]);
    for (int64_t p = begin; p < end; ++p) {
      float* sum = sums + int64_t(target[p]) * 4;
      sum[2 * relation] += weight[p] * v;
      sum[2 * relation + 1] += weight[p] * m;
      float& top = peak[target[p] / BLOCK_ROWS];
      top = std::max(top, height(sum, float(shrinkage)));
    }
    edges += end - begin;
  }
  return edges;
}

// The non-decreasing step function nearest to v [V] with weights w, u ascending: predictions within `tolerance` of their
// neighbour are one knot. knots and values float64 [V] come out; the number of knots is returned.
int64_t isotonic(const double* u, const double* v, const double* w, int64_t count, double tolerance, double* knots, double* values) {
  struct Block {
    double sum, mass;
    int64_t count;
  };
  std::vector<Block> blocks;
  blocks.reserve(count);
  int64_t distinct = 0;
  for (int64_t i = 0; i < count; ++distinct) {
    Block block{0, 0, 1};
    knots[distinct] = u[i];
    for (int64_t first = i; i < count && (i == first || u[i] - u[i - 1] <= tolerance); ++i) {
      block.mass += w[i];
      block.sum += w[i] * v[i];
    }
    while (!blocks.empty() && blocks.back().sum * block.mass > block.sum * blocks.back().mass) {
      block = {block.sum + blocks.back().sum, block.mass + blocks.back().mass, block.count + blocks.back().count};
      blocks.pop_back();
    }
    blocks.push_back(block);
  }
  int64_t k = 0;
  for (const Block& block : blocks) {
    std::fill(values + k, values + k + block.count, block.sum / block.mass);
    k += block.count;
  }
  return distinct;
}

EXPORT int64_t envsched_isotonic(const double* u, const double* v, const double* w, int64_t count, double tolerance, double* knots,
                                 double* values) {
  return isotonic(u, v, w, count, tolerance, knots, values);
}

// One whole propagation: out[i] = sum_k weight[i, k] * stats[row[i, k]] over lists row [N, K] (-1: none), stats [N][2].
EXPORT void envsched_gather(const int32_t* row, const float* weight, const float* stats, int64_t N, int64_t K, float* out, int threads) {
  constexpr int64_t AHEAD = 16;  // rows between a prefetch and its use
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < N; ++i) {
    if (i + AHEAD < N)
      for (int64_t k = 0; k < K; ++k) {
        const int32_t j = row[(i + AHEAD) * K + k];
        __builtin_prefetch(stats + 2 * int64_t(j < 0 ? 0 : j));
      }
    float value = 0, mass = 0;
    for (int64_t k = 0; k < K; ++k) {
      const int32_t j = row[i * K + k];
      if (j < 0) continue;
      value += weight[i * K + k] * stats[2 * int64_t(j)];
      mass += weight[i * K + k] * stats[2 * int64_t(j) + 1];
    }
    out[2 * i] = value;
    out[2 * i + 1] = mass;
  }
}

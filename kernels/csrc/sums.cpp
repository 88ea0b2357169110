// Maintained sums: what each task's neighbours say, kept up to date by scattering only what changed.
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

// sums[target][2 relation, 2 relation + 1] += weight * (value, mass) for every target of every source; peak keeps up.
EXPORT int64_t envsched_scatter(float* sums, float* peak, const int64_t* pointer, const int32_t* target, const float* weight, int64_t relation,
                                const int64_t* source, const double* mass, const double* value, int64_t count) {
  int64_t edges = 0;
  for (int64_t s = 0; s < count; ++s)
    for (int64_t p = pointer[source[s]]; p < pointer[source[s] + 1]; ++p) __builtin_prefetch(target + p);
  for (int64_t s = 0; s < count; ++s) {
    const int64_t begin = pointer[source[s]], end = pointer[source[s] + 1];
    const float m = float(mass[s]), v = float(value[s]);
    for (int64_t p = begin; p < end; ++p) __builtin_prefetch(sums + int64_t(target[p]) * 4, 1);
    for (int64_t p = begin; p < end; ++p) {
      float* sum = sums + int64_t(target[p]) * 4 + 2 * relation;
      sum[0] += weight[p] * v;
      sum[1] += weight[p] * m;
      float& top = peak[target[p] / BLOCK_ROWS];
      top = std::max(top, sums[int64_t(target[p]) * 4] + sums[int64_t(target[p]) * 4 + 2]);
    }
    edges += end - begin;
  }
  return edges;
}

// Masses and values of environments and pool from the visited tasks, in the order of their rows.
EXPORT void envsched_refresh(State* s) {
  std::fill(s->environment_mass, s->environment_mass + s->num_environments, 0.0);
  std::fill(s->environment_value, s->environment_value + s->num_environments, 0.0);
  std::fill(s->environment_exposure, s->environment_exposure + s->num_environments, 0.0);
  s->pool_mass = s->pool_value = 0;
  for (int64_t place = 0; place < s->num_slots; ++place) {
    const int64_t slot = s->order[place];
    const Own own = own_of(*s, slot);
    const int64_t e = s->environment[slot];
    s->environment_mass[e] += own.c;
    s->environment_value[e] += own.c * own.variance;
    s->environment_exposure[e] += exposure_of(*s, s->row[slot]);
    s->pool_mass += own.c;
    s->pool_value += own.c * own.variance;
  }
}

// Terms of single tasks: out float64 [count, 8] in the order of struct Terms.
EXPORT void envsched_evaluate(const State* s, const int64_t* row, const int64_t* environment, int64_t count, double* out) {
  for (int64_t i = 0; i < count; ++i) {
    const Terms t = evaluate(*s, row[i], environment[i]);
    const double values[8] = {t.u, t.g, t.environment, t.within_mass, t.within, t.cross_mass, t.cross, t.guard};
    std::copy(values, values + 8, out + i * 8);
  }
}

namespace {

// Rows first .. last of one environment whose g may reach the threshold, as bits offered to `emit`.
// A task without own evidence has u = g, and for `envsched` g >= threshold is linear in its four sums:
//     d (W_w + k W_c) - threshold d (m_w + k m_c) >= threshold lambda - lambda env.
template <class Emit>
inline void scan_pooled(const float* sums, int64_t first, int64_t last, const float (&c)[4], float bar, Emit emit) {
  int64_t i = first;
#if defined(__AVX512F__)
  const __m512 factors = _mm512_broadcast_f32x4(_mm_loadu_ps(c)), limit = _mm512_set1_ps(bar);
  auto reached = [&](__m512 x) {
    x = _mm512_mul_ps(x, factors);
    x = _mm512_add_ps(x, _mm512_permute_ps(x, 0x4E));
    x = _mm512_add_ps(x, _mm512_permute_ps(x, 0xB1));
    return unsigned(_mm512_cmp_ps_mask(x, limit, _CMP_GE_OQ)) & 0x1111u;
  };
  for (; i < last; i += 4) {
    const unsigned valid = last - i >= 4 ? 0xFFFFu : (1u << (4 * (last - i))) - 1;
    for (unsigned hit = reached(_mm512_maskz_loadu_ps(__mmask16(valid), sums + i * 4)) & valid; hit; hit &= hit - 1)
      emit(i + __builtin_ctz(hit) / 4);
  }
#else
  for (; i < last; ++i) {
    const float* x = sums + i * 4;
    if (x[0] * c[0] + x[1] * c[1] + x[2] * c[2] + x[3] * c[3] >= bar) emit(i);
  }
#endif
}

template <class Emit>
inline void scan_paper(const float* sums, int64_t first, int64_t last, float d, float lambda, float env, float pool, float threshold, Emit emit) {
  for (int64_t i = first; i < last; ++i) {
    const float* x = sums + i * 4;
    const float m_w = x[1] * d, m_c = x[3] * d;
    const float p_w = (x[0] * d + lambda * env) / (m_w + lambda), p_c = (x[2] * d + lambda * pool) / (m_c + lambda);
    const float total = m_w + m_c;
    if (total > 0 ? m_w * p_w + m_c * p_c >= threshold * total : env >= threshold) emit(i);
  }
}

}  // namespace

// Rows with u >= threshold, ascending, with their u; at most `capacity` are written, the number found is returned.
EXPORT int64_t envsched_score(const State* s, double threshold, int64_t* rows, double* u, int64_t capacity, int threads) {
  const float slack = float(threshold - 1e-5 * std::fabs(threshold) - 1e-9), d = float(s->inverse_scale);
  const float lambda = float(s->graph_shrinkage), k = float(s->cross_weight);
  const double pool = s->paper ? (s->pool_mass > 0 ? s->pool_value / s->pool_mass : s->prior_variance)
                               : (s->pool_mass > 1e-9 ? s->pool_value / s->pool_mass : s->prior_variance);
  // u of a task without own evidence is at most (lambda parent + V) / (lambda + V / v_max), V = d (W_w + W_c), since no source
  // says more than v_max: it stays below the threshold while V < lambda (threshold - parent) / (1 - threshold / v_max).
  const double left = 1 - slack / s->max_variance, room = left > 0 ? (1 - 1e-5) / (left * d) : INFINITY;
  const float factors[4] = {d, -slack * d, k * d, -slack * k * d};
  const int64_t parts = std::max(1, threads);
  std::vector<std::vector<int64_t>> found(parts);
  std::vector<std::vector<double>> value(parts);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (parts > 1)
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t begin = s->num_environments * part / parts, end = s->num_environments * (part + 1) / parts;
    for (int64_t e = begin; e < end; ++e) {
      const double env = (s->environment_value[e] + s->graph_shrinkage * pool) / (s->environment_mass[e] + s->graph_shrinkage);
      const double parent = s->paper ? std::max(env, pool) : env;
      const float bar = float(room * s->graph_shrinkage * (slack - parent));
      auto emit = [&](int64_t row) {
        if (s->slot_of[row] >= 0 || (s->masked && s->masked[row])) return;
        const double exact = evaluate(*s, row, e, -1).u;
        if (exact < threshold) return;
        found[part].push_back(row);
        value[part].push_back(exact);
      };
      for (int64_t first = s->offsets[e], stop = s->offsets[e + 1]; first < stop;) {
        const int64_t last = std::min(stop, (first / BLOCK_ROWS + 1) * BLOCK_ROWS);
        if (parent >= slack || s->peak[first / BLOCK_ROWS] >= bar) {
          if (s->paper)
            scan_paper(s->sums, first, last, d, lambda, float(env), float(pool), slack, emit);
          else
            scan_pooled(s->sums, first, last, factors, slack * lambda - lambda * float(env), emit);
        }
        first = last;
      }
    }
  }
  int64_t count = 0;
  auto put = [&](int64_t row, double value) {
    if (count < capacity) {
      rows[count] = row;
      u[count] = value;
    }
    ++count;
  };
  for (int64_t part = 0; part < parts; ++part)
    for (size_t i = 0; i < found[part].size(); ++i) put(found[part][i], value[part][i]);
  constexpr int64_t AHEAD = 8;  // visited tasks between a prefetch and its use
  for (int64_t slot = 0; slot < s->num_slots; ++slot) {
    if (slot + AHEAD < s->num_slots) __builtin_prefetch(s->sums + int64_t(s->row[slot + AHEAD]) * 4);
    if (s->masked && s->masked[s->row[slot]]) continue;
    const double value = evaluate(*s, s->row[slot], s->environment[slot], slot).u;
    if (value >= threshold) put(s->row[slot], value);
  }
  return count;
}

// u of every task, float64 [N].
EXPORT void envsched_predict(const State* s, double* u, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t e = 0; e < s->num_environments; ++e)
    for (int64_t row = s->offsets[e]; row < s->offsets[e + 1]; ++row) u[row] = evaluate(*s, row, e).u;
}

// The non-decreasing step function nearest to v [V] with weights w, u ascending: predictions within `tolerance` of their
// neighbour are one knot. knots and values float64 [V] come out; the number of knots is returned.
EXPORT int64_t envsched_isotonic(const double* u, const double* v, const double* w, int64_t count, double tolerance, double* knots,
                                 double* values) {
  std::vector<double> mass, sum;       // of each knot
  for (int64_t i = 0; i < count; ++i) {
    if (i == 0 || u[i] - u[i - 1] > tolerance) {
      knots[mass.size()] = u[i];
      mass.push_back(0);
      sum.push_back(0);
    }
    mass.back() += w[i];
    sum.back() += w[i] * v[i];
  }
  struct Block {
    double sum, mass;
    int64_t count;
  };
  std::vector<Block> blocks;
  for (size_t k = 0; k < mass.size(); ++k) {
    Block block{sum[k], mass[k], 1};
    while (!blocks.empty() && blocks.back().sum * block.mass > block.sum * blocks.back().mass) {
      block = {block.sum + blocks.back().sum, block.mass + blocks.back().mass, block.count + blocks.back().count};
      blocks.pop_back();
    }
    blocks.push_back(block);
  }
  int64_t k = 0;
  for (const Block& block : blocks)
    for (int64_t i = 0; i < block.count; ++i) values[k++] = block.sum / block.mass;
  return int64_t(mass.size());
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

#include "score.h"

namespace {

// What decides whether a block of tasks can reach a threshold.
// u of a task without own evidence is at most (lambda parent + V) / (lambda + V / v_max), V = d (W_w + W_c), since no source says
// more than v_max: it stays below the threshold while V < lambda (threshold - parent) / (1 - threshold / v_max). With residuals it is
// (1 + beta) max(0, parent + R) + lift, R = R_w + R_c: below while R < (threshold - lift) / (1 + beta) - parent.
struct Bar {
  float slack, d, lambda, k;
  double room, heard = -INFINITY;  // heard: what parent and residuals must reach together

  Bar(const State& s, double threshold)
      : slack(float(threshold - 1e-5 * std::fabs(threshold) - 1e-9)), d(float(s.inverse_scale)), lambda(float(s.graph_shrinkage)), k(float(s.cross_weight)) {
    const double left = 1 - slack / s.max_variance;
    room = left > 0 ? (1 - 1e-5) / (left * d) : INFINITY;
    if (slack > s.lift) heard = (slack - s.lift) / (1 + s.optimism) - 1e-6 * s.max_variance;
  }
  // The least peak of a block whose tasks hear `parent`.
  float of(const State& s, double parent) const {
    if (s.rule == RESIDUAL) return float(heard - parent);
    return parent >= slack ? -INFINITY : float(room * s.graph_shrinkage * (slack - parent));
  }
};

double highest_parent(const State& s, const Parents& p) { return s.rule == PAPER ? std::max(p.environment, p.pool) : p.environment; }

// g is at most this where the peak of the task's block is `peak`.
double highest_prior(const State& s, const Parents& p, double peak) {
  const double parent = highest_parent(s, p), heard = peak * s.inverse_scale, lambda = s.graph_shrinkage;
  if (s.rule == RESIDUAL) return hopeful(s, parent + peak + 1e-6 * s.max_variance);
  return std::max(parent, (lambda * parent + heard) / (lambda + heard / s.max_variance));
}

// Rows first .. last of one environment whose g may reach the threshold, given to `emit`.
// A task without own evidence has u = g, and for `envsched` g >= threshold is linear in its four sums:
//     d (W_w + k W_c) - threshold d (m_w + k m_c) >= threshold lambda - lambda env.
template <class Emit>
inline void scan_pooled(const State& s, int64_t first, int64_t last, const Bar& b, float env, Emit emit) {
  const float c[4] = {b.d, -b.slack * b.d, b.k * b.d, -b.slack * b.k * b.d}, bar = b.slack * b.lambda - b.lambda * env;
  const float* sums = s.sums - s.first_row * 4;
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
inline void scan_paper(const State& s, int64_t first, int64_t last, const Bar& b, float env, float pool, Emit emit) {
  for (int64_t i = first; i < last; ++i) {
    const float* x = s.sums + s.place(i) * 4;
    const float m_w = x[1] * b.d, m_c = x[3] * b.d;
    const float p_w = (x[0] * b.d + b.lambda * env) / (m_w + b.lambda), p_c = (x[2] * b.d + b.lambda * pool) / (m_c + b.lambda);
    const float total = m_w + m_c;
    if (total > 0 ? m_w * p_w + m_c * p_c >= b.slack * total : env >= b.slack) emit(i);
  }
}

// R_w + R_c reaches `bar`.
template <class Emit>
inline void scan_residual(const State& s, int64_t first, int64_t last, float bar, Emit emit) {
  const float shrinkage = float(s.residual_shrinkage);
  const float* sums = s.sums - s.first_row * 4;
  int64_t i = first;
#if defined(__AVX512F__)
  const __m512 rho = _mm512_set1_ps(shrinkage), limit = _mm512_set1_ps(bar);
  for (; i < last; i += 4) {
    const unsigned valid = last - i >= 4 ? 0xFFFFu : (1u << (4 * (last - i))) - 1;
    __m512 x = _mm512_maskz_loadu_ps(__mmask16(valid), sums + i * 4);
    x = _mm512_div_ps(x, _mm512_add_ps(_mm512_permute_ps(x, 0xB1), rho));  // of W lanes alone it means something
    x = _mm512_add_ps(x, _mm512_permute_ps(x, 0x4E));
    for (unsigned hit = unsigned(_mm512_cmp_ps_mask(x, limit, _CMP_GE_OQ)) & 0x1111u & valid; hit; hit &= hit - 1) emit(i + __builtin_ctz(hit) / 4);
  }
#else
  for (; i < last; ++i)
    if (height(sums + i * 4, shrinkage) >= bar) emit(i);
#endif
}

struct Sink {
  double threshold, scale;
  int64_t capacity;
  std::vector<Found> tasks;
  std::vector<int64_t> bins;
  int64_t count = 0;

  void put(const Found& found) {
    if (++count <= capacity) tasks.push_back(found);
    ++bins[std::min<int64_t>(Scored::BINS - 1, int64_t((found.u - threshold) * scale))];
  }
};

// Tasks without own evidence of environments first .. last.
class Pass {
 public:
  Pass(const State& s, const Bar& bar, double threshold, Sink& sink) : s_(s), bar_(bar), threshold_(threshold), sink_(sink) {}

  void environments(int64_t first, int64_t last) {
    const int64_t begin = s_.offsets[first], end = s_.offsets[last];
    if (begin == end) return;
    // Environments without evidence hear the same parents, and share one bar: their blocks in one sweep over the peaks.
    const Parents common = parents(s_, 0, 0, UNSEEN);
    const float bar = bar_.of(s_, highest_parent(s_, common));
    int64_t e = first;
    for (int64_t block = s_.place(begin) / BLOCK_ROWS, stop = (s_.place(end) - 1) / BLOCK_ROWS + 1; (block = next(block, stop, bar)) < stop; ++block) {
      int64_t row = std::max(begin, s_.first_row + block * BLOCK_ROWS);
      const int64_t after = std::min(end, s_.first_row + (block + 1) * BLOCK_ROWS);
      while (row < after) {
        while (s_.offsets[e + 1] <= row) ++e;
        const int64_t until = std::min(after, s_.offsets[e + 1]);
        if (s_.environment_mass[e] == 0) pieces_.push_back({row, until, e, common});
        row = until;
      }
    }
    // The others have bars of their own.
    const int32_t* place = std::lower_bound(s_.order, s_.order + s_.num_slots, first, [&](int32_t slot, int64_t e) { return s_.environment[slot] < e; });
    for (int64_t done = -1; place != s_.order + s_.num_slots && s_.environment[*place] < last; ++place)
      if (const int64_t e = s_.environment[*place]; e != done && s_.environment_mass[e] != 0) speaking(done = e);
    drain();
  }

 private:
  struct Piece {
    int64_t first, last, environment;
    Parents parent;
  };

  // A look at the pieces' sums comes late, when they have arrived from memory.
  void drain() {
    constexpr size_t AHEAD = 12;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (i + AHEAD < pieces_.size()) {
        const Piece& ahead = pieces_[i + AHEAD];
        for (int64_t row = ahead.first; row < ahead.last; row += 4) __builtin_prefetch(s_.sums + s_.place(row) * 4);
        __builtin_prefetch(s_.slot_of + s_.place(ahead.first));
      }
      scan(pieces_[i]);
    }
    pieces_.clear();
  }

  int64_t next(int64_t block, int64_t stop, float bar) const {
#if defined(__AVX512F__)
    const __m512 limit = _mm512_set1_ps(bar);
    for (; block + 16 <= stop; block += 16)
      if (const unsigned hit = _mm512_cmp_ps_mask(_mm512_loadu_ps(s_.peak + block), limit, _CMP_GE_OQ)) return block + __builtin_ctz(hit);
#endif
    while (block < stop && !(s_.peak[block] >= bar)) ++block;
    return block;
  }

  void speaking(int64_t e) {
    const Parents parent = parents(s_, e, UNSEEN);
    const float bar = bar_.of(s_, highest_parent(s_, parent));
    for (int64_t row = s_.offsets[e], stop = s_.offsets[e + 1]; row < stop;) {
      const int64_t block = s_.place(row) / BLOCK_ROWS, until = std::min(stop, s_.first_row + (block + 1) * BLOCK_ROWS);
      if (s_.peak[block] >= bar) pieces_.push_back({row, until, e, parent});
      row = until;
    }
  }

  void scan(const Piece& piece) {
    const auto& [first, last, e, parent] = piece;
    auto emit = [&, e = e, parent = parent](int64_t row) {
      if (s_.slot_of[s_.place(row)] >= 0) return;
      const double exact = evaluate(s_, row, UNSEEN, parent).u;
      if (exact >= threshold_) sink_.put({row, int32_t(e), -1, exact});
    };
    if (s_.rule == RESIDUAL)
      scan_residual(s_, first, last, bar_.of(s_, parent.environment), emit);
    else if (s_.rule == PAPER)
      scan_paper(s_, first, last, bar_, float(parent.environment), float(parent.pool), emit);
    else
      scan_pooled(s_, first, last, bar_, float(parent.environment), emit);
  }

  const State& s_;
  const Bar& bar_;
  double threshold_;
  Sink& sink_;
  std::vector<Piece> pieces_;  // whose sums are to be looked at
};

// Visited tasks: most are ruled out by their own evidence and their block's peak.
void score_visited(const State& s, const Bar& bar, double threshold, Sink& sink) {
  for (int64_t slot = 0; slot < s.num_slots; ++slot) {
    const int64_t row = s.row[slot], e = s.environment[slot];
    if (!s.holds(row)) continue;
    const Own own = own_of(s, slot);
    const Parents parent = parents(s, e, own);
    const double g = highest_prior(s, parent, double(s.peak[s.place(row) / BLOCK_ROWS]));
    if ((own.mass * own.variance + s.own_shrinkage * g) / (own.mass + s.own_shrinkage) * (1 + 1e-5) < double(bar.slack)) continue;
    const double exact = evaluate(s, row, own, parent).u;
    if (exact >= threshold) sink.put({row, int32_t(e), int32_t(slot), exact});
  }
}

// Predictions that are known already need no sums.
void score_known(const State& s, double threshold, Sink& sink) {
  int64_t e = 0;
  for (int64_t row = 0; row < s.num_tasks; ++row)
    if (s.predicted[row] >= threshold) {
      while (s.offsets[e + 1] <= row) ++e;
      sink.put({row, int32_t(e), s.slot_of[row], s.predicted[row]});
    }
}

}  // namespace

bool score(const State& s, double threshold, int64_t capacity, Scored& out) {
  const Bar bar(s, threshold);
  const int64_t parts = std::max<int64_t>(1, s.threads), width = s.last_environment - s.first_environment;
  out.from = threshold;
  out.width = (s.max_variance - threshold) / Scored::BINS;
  const double scale = out.width > 0 ? 1 / out.width : 0;
  std::vector<Sink> sinks(parts, Sink{threshold, scale, capacity, {}, std::vector<int64_t>(Scored::BINS, 0)});
  if (s.predicted) {
    score_known(s, threshold, sinks[0]);
  } else {
#pragma omp parallel for num_threads(parts) schedule(static, 1) if (parts > 1)
    for (int64_t part = 0; part < parts; ++part)
      Pass(s, bar, threshold, sinks[part]).environments(s.first_environment + width * part / parts, s.first_environment + width * (part + 1) / parts);
    score_visited(s, bar, threshold, sinks[0]);
  }
  out.tasks = std::move(sinks[0].tasks);
  out.bins = std::move(sinks[0].bins);
  out.count = sinks[0].count;
  for (int64_t part = 1; part < parts; ++part) {
    out.tasks.insert(out.tasks.end(), sinks[part].tasks.begin(), sinks[part].tasks.end());
    for (int64_t bin = 0; bin < Scored::BINS; ++bin) out.bins[bin] += sinks[part].bins[bin];
    out.count += sinks[part].count;
  }
  if (!s.exchange) return true;
  std::vector<int64_t> counts = out.bins;
  counts.push_back(out.count);
  if (!gather_items(s, counts)) return false;
  std::fill(out.bins.begin(), out.bins.end(), 0);
  out.count = 0;
  for (size_t i = 0; i < counts.size(); ++i) (i % (Scored::BINS + 1) == Scored::BINS ? out.count : out.bins[i % (Scored::BINS + 1)]) += counts[i];
  if (out.count > capacity) return true;
  return gather_items(s, out.tasks);
}

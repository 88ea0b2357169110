// The cross relation between classes of tasks with one topology: evidence at a source reaches all members of the classes that
// listen to its own, but those of its environment.
#include "state.h"

namespace {

struct Share {
  int32_t listener;  // class
  int32_t source;    // index of the source
  double weight;
};

}  // namespace

// pointer int64 [U + 1], target int32 [E], weight float32 [E]: classes that listen to each class, itself among them. first
// int64 [U + 1], member int32 [N]: tasks of each class, ascending. environment int32 [N]. source int64 [S] with the changes of
// mass and value float64 [S]; class_of int32 [N]. Adds to columns 2 and 3 of sums [N][4]; peak keeps up. Returns the edges.
EXPORT int64_t envsched_classes(float* sums, float* peak, const int64_t* pointer, const int32_t* target, const float* weight,
                                const int64_t* first, const int32_t* member, const int32_t* environment, const int32_t* class_of,
                                int64_t num_environments, const int64_t* source, const double* mass, const double* value, int64_t count,
                                double shrinkage) {
  std::vector<Share> shares;
  std::vector<uint8_t> visited(num_environments, 0);
  for (int64_t s = 0; s < count; ++s) {
    const int32_t own = class_of[source[s]];
    visited[environment[source[s]]] = 1;
    for (int64_t p = pointer[own]; p < pointer[own + 1]; ++p) shares.push_back({target[p], int32_t(s), double(weight[p])});
  }
  std::stable_sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) { return a.listener < b.listener; });
  int64_t edges = 0;
  for (size_t begin = 0, end; begin < shares.size(); begin = end) {
    const int32_t listener = shares[begin].listener;
    double all_mass = 0, all_value = 0;
    for (end = begin; end < shares.size() && shares[end].listener == listener; ++end) {
      all_mass += shares[end].weight * mass[shares[end].source];
      all_value += shares[end].weight * value[shares[end].source];
    }
    for (int64_t p = first[listener]; p < first[listener + 1]; ++p) {
      const int32_t i = member[p], e = environment[i];
      double m = all_mass, v = all_value;
      if (visited[e]) {  // summed again without its own environment: a difference would leave rounding behind
        m = v = 0;
        for (size_t k = begin; k < end; ++k) {
          if (environment[source[shares[k].source]] == e) continue;
          m += shares[k].weight * mass[shares[k].source];
          v += shares[k].weight * value[shares[k].source];
        }
      }
      float* sum = sums + int64_t(i) * 4;
      sum[2] += float(v);
      sum[3] += float(m);
      float& top = peak[i / BLOCK_ROWS];
      top = std::max(top, height(sum, float(shrinkage)));
    }
    edges += (first[listener + 1] - first[listener]) * int64_t(end - begin);
  }
  return edges;
}

#include "similarity.h"

namespace {

typedef float Lanes __attribute__((vector_size(LANES * sizeof(float))));

float largest(const Lanes& lanes) {
  float most = lanes[0];
  for (int64_t l = 1; l < LANES; ++l) most = lanes[l] > most ? lanes[l] : most;
  return most;
}

}  // namespace

float products_with(const float* x, const Line* lines, int64_t D, Line& dot) {
  auto line = [lines](int64_t d) {
    Lanes lanes;
    std::memcpy(&lanes, lines + d, sizeof lanes);
    return lanes;
  };
  Lanes a{}, b{}, c{}, e{};  // four sums in flight
  int64_t d = 0;
  for (; d + 4 <= D; d += 4) {
    a += x[d] * line(d);
    b += x[d + 1] * line(d + 1);
    c += x[d + 2] * line(d + 2);
    e += x[d + 3] * line(d + 3);
  }
  for (; d < D; ++d) a += x[d] * line(d);
  const Lanes sum = (a + b) + (c + e);
  std::memcpy(&dot, &sum, sizeof dot);
  return largest(sum);
}

// Registers of 16 floats.
#pragma once
#include "common.h"

#if defined(__AVX512F__)
// The sums of 16 rows of 16.
inline __m512 sum_rows(const __m512 (&row)[16]) {
  __m512 two[8], four[4], eight[2];
  for (int r = 0; r < 8; ++r) two[r] = _mm512_add_ps(_mm512_unpacklo_ps(row[2 * r], row[2 * r + 1]), _mm512_unpackhi_ps(row[2 * r], row[2 * r + 1]));
  for (int r = 0; r < 4; ++r) {
    const __m512d a = _mm512_castps_pd(two[2 * r]), b = _mm512_castps_pd(two[2 * r + 1]);
    four[r] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  }
  for (int r = 0; r < 2; ++r)
    eight[r] = _mm512_add_ps(_mm512_shuffle_f32x4(four[2 * r], four[2 * r + 1], 0x88), _mm512_shuffle_f32x4(four[2 * r], four[2 * r + 1], 0xdd));
  return _mm512_add_ps(_mm512_shuffle_f32x4(eight[0], eight[1], 0x88), _mm512_shuffle_f32x4(eight[0], eight[1], 0xdd));
}
#endif

#pragma once
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "isa.h"
#include "ops/cpu/kernels/scalar.h"

// Vectors as wide as the instruction set's registers.
namespace rankine::RANKINE_ISA {

using Floats [[gnu::vector_size(vector_bytes)]] = float;
using Words [[gnu::vector_size(vector_bytes)]] = uint32_t;
using HalfWords [[gnu::vector_size(vector_bytes / 2)]] = uint16_t;
constexpr int lanes = vector_bytes / 4;

[[gnu::always_inline]] static inline Floats load(const float* from) {
  Floats x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}
[[gnu::always_inline]] static inline Words load(const uint32_t* from) {
  Words x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}
[[gnu::always_inline]] static inline Floats load(const Bf16* from) {
  HalfWords halves;
  __builtin_memcpy(&halves, from, sizeof halves);
  return (Floats)(__builtin_convertvector(halves, Words) << 16);
}
[[gnu::always_inline]] static inline Floats load(const F16* from) {
#if defined(__AVX512F__)
  return (Floats)_mm512_maskz_cvtph_ps(0xffff,
                                       _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#else
  return (Floats)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#endif
}
[[gnu::always_inline]] static inline void store(float* to, Floats x) {
  __builtin_memcpy(to, &x, sizeof x);
}
// Rounds to bf16, nearest even; for finite numbers.
[[gnu::always_inline]] static inline void store(Bf16* to, Floats x) {
  const Words bits = (Words)x;
  const HalfWords rounded =
      __builtin_convertvector((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16, HalfWords);
  __builtin_memcpy(to, &rounded, sizeof rounded);
}

[[gnu::always_inline]] static inline Floats larger(Floats a, Floats b) {
  return a > b ? a : b;
}
// Lane l holds l ^ step: the partner it exchanges with.
template <int step>
[[gnu::always_inline]] static inline Words exchanged() {
  Words lane;
#pragma GCC unroll 16
  for (int l = 0; l < lanes; ++l) lane[l] = static_cast<uint32_t>(l ^ step);
  return lane;
}

// Folds the halves of x onto each other until every lane holds the result of all.
template <int half = lanes / 2, class Fold>
[[gnu::always_inline]] static inline float folded(Floats x, const Fold& fold) {
  x = fold(x, __builtin_shuffle(x, exchanged<half>()));
  if constexpr (half > 1)
    return folded<half / 2>(x, fold);
  else
    return x[0];
}
[[gnu::always_inline]] static inline float largest(Floats x) {
  return folded(x, [](Floats a, Floats b) { return larger(a, b); });
}
[[gnu::always_inline]] static inline float total(Floats x) {
  return folded(x, [](Floats a, Floats b) { return a + b; });
}

// One pass of a transposition: swaps the off-diagonal quarters of 2 half x 2 half squares.
template <int half>
[[gnu::always_inline]] static inline void swap_quarters(Words (&rows)[lanes]) {
  Words low, high;
#pragma GCC unroll 16
  for (int l = 0; l < lanes; ++l) {
    low[l] = static_cast<uint32_t>((l & half) != 0 ? lanes + l - half : l);
    high[l] = static_cast<uint32_t>((l & half) != 0 ? lanes + l : l + half);
  }
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) {
    if ((i & half) != 0) continue;
    const Words a = rows[i], b = rows[i + half];
    rows[i] = __builtin_shuffle(a, b, low);
    rows[i + half] = __builtin_shuffle(a, b, high);
  }
  if constexpr (2 * half < lanes) swap_quarters<2 * half>(rows);
}

// to[c][r] = from[r][c] for a dense square of lanes x lanes 32-bit words.
[[gnu::always_inline]] static inline void transpose_square(const void* from, void* to,
                                                           ptrdiff_t stride) {
  Words rows[lanes];
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i)
    __builtin_memcpy(&rows[i], static_cast<const char*>(from) + i * vector_bytes, vector_bytes);
  swap_quarters<1>(rows);
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i)
    __builtin_memcpy(static_cast<char*>(to) + i * stride * 4, &rows[i], vector_bytes);
}

// 2^x for x <= 126 with relative error below 2e-7; exactly 0 below -126.
[[gnu::always_inline]] static inline Floats exp2_floats(Floats x) {
  const Floats shifted = x + 12582912.0f;  // 1.5 * 2^23: the integer part lands in the low bits
  const Floats f = x - (shifted - 12582912.0f);
  Floats p = 1.54035304e-4f * f + 1.33335581e-3f;
  p = p * f + 9.61812911e-3f;
  p = p * f + 5.55041087e-2f;
  p = p * f + 2.40226507e-1f;
  p = p * f + 6.93147181e-1f;
  p = p * f + 1.0f;
  const Floats power = (Floats)((Words)p + ((Words)shifted << 23));
  return x > -126.0f ? power : Floats{};
}

}  // namespace rankine::RANKINE_ISA

#pragma once
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
[[gnu::always_inline]] static inline float largest(Floats x) {
  float best = x[0];
  for (int i = 1; i < lanes; ++i) best = x[i] > best ? x[i] : best;
  return best;
}
[[gnu::always_inline]] static inline float total(Floats x) {
  float sum = 0;
  for (int i = 0; i < lanes; ++i) sum += x[i];
  return sum;
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

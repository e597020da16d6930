#pragma once
#include <cstdint>

// Numbers inside kernels: storage types, conversions and elementary functions that vectorise. All
// live in the namespace of the instruction set and are always inlined; none needs -ffast-math.
namespace rankine::RANKINE_ISA {

struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

[[gnu::always_inline]] static inline uint32_t bits_of(float x) {
  return __builtin_bit_cast(uint32_t, x);
}
[[gnu::always_inline]] static inline float float_of(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

[[gnu::always_inline]] static inline float up(float x) {
  return x;
}
[[gnu::always_inline]] static inline float up(Bf16 x) {
  return float_of(static_cast<uint32_t>(x.bits) << 16);
}
// Subnormals go through an integer conversion: the multiply trick would meet denormals-are-zero.
[[gnu::always_inline]] static inline float up(F16 x) {
  const uint32_t magnitude = x.bits & 0x7fffu, sign = (x.bits & 0x8000u) << 16;
  const uint32_t normal = (magnitude << 13) + (112u << 23);
  const uint32_t special = (magnitude << 13) + (224u << 23);  // infinities and NaNs
  const uint32_t subnormal =
      bits_of(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  const uint32_t finite = magnitude < 0x400u ? subnormal : normal;
  return float_of((magnitude >= 0x7c00u ? special : finite) | sign);
}

// down(to, x): to = x rounded to nearest even; a NaN stays a quiet NaN.
[[gnu::always_inline]] static inline void down(float& to, float x) {
  to = x;
}
[[gnu::always_inline]] static inline void down(Bf16& to, float x) {
  const uint32_t bits = bits_of(x), rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  to.bits = static_cast<uint16_t>((x == x ? rounded : bits | 0x400000u) >> 16);
}
[[gnu::always_inline]] static inline void down(F16& to, float x) {
  const uint32_t bits = bits_of(x), magnitude = bits & 0x7fffffffu;
  const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Adding 0.5 makes the adder round at 2^-24, the spacing of subnormal halves.
  const uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t half = magnitude < (113u << 23) ? subnormal : normal;
  half = magnitude >= 0x477ff000u ? 0x7c00u : half;
  half = magnitude > 0x7f800000u ? (0x7e00u | (magnitude >> 13 & 0x3ffu)) : half;
  to.bits = static_cast<uint16_t>(half | ((bits >> 16) & 0x8000u));
}

// 2^x with relative error below 2e-7 for x in [-126, 126]; clamped outside. A NaN gives a
// number, too.
[[gnu::always_inline]] static inline float exp2_fast(float x) {
  // Clamped as integers: float comparisons here become branches and blends, not min and max.
  const auto bits = static_cast<int32_t>(bits_of(x)), top = static_cast<int32_t>(bits_of(126.0f));
  const auto below = static_cast<uint32_t>(bits < top ? bits : top);
  x = float_of(below < bits_of(-126.0f) ? below : bits_of(-126.0f));
  const float shifted = x + 12582912.0f;  // 1.5 * 2^23: the integer part lands in the low bits
  const float f = x - (shifted - 12582912.0f);
  float p = 1.54035304e-4f;
  p = p * f + 1.33335581e-3f;
  p = p * f + 9.61812911e-3f;
  p = p * f + 5.55041087e-2f;
  p = p * f + 2.40226507e-1f;
  p = p * f + 6.93147181e-1f;
  p = p * f + 1.0f;
  return float_of(bits_of(p) + (bits_of(shifted) << 23));
}
[[gnu::always_inline]] static inline float exp_fast(float x) {
  return exp2_fast(x * 1.44269504f);
}

// tanh with relative error of a few 1e-7.
[[gnu::always_inline]] static inline float tanh_fast(float x) {
  const float s = x * x;  // small arguments: Cephes' tanhf polynomial, free of cancellation
  float p = -5.70498872745e-3f;
  p = p * s + 2.06390887954e-2f;
  p = p * s - 5.37397155531e-2f;
  p = p * s + 1.33314422036e-1f;
  p = p * s - 3.33332819422e-1f;
  const float small = p * s * x + x;
  const float large = 1.0f - 2.0f / (exp_fast(2.0f * x) + 1.0f);
  return s < 0.390625f ? small : large;
}

// erf with relative error of a few 1e-7 (two minimax polynomials, split at |x| = 0.9277).
[[gnu::always_inline]] static inline float erf_fast(float x) {
  const float s = x * x, t = x < 0 ? -x : x;
  float p = -5.96761703e-4f;
  p = p * s + 4.99119423e-3f;
  p = p * s - 2.67681349e-2f;
  p = p * s + 1.12819925e-1f;
  p = p * s - 3.76125336e-1f;
  p = p * s + 1.28379166e-1f;
  const float small = p * x + x;
  float q = (-1.72853470e-5f * t + 3.83197126e-4f) * s + (-3.88396438e-3f * t + 2.42546219e-2f);
  q = q * t - 1.06777877e-1f;
  q = q * t - 6.34846687e-1f;
  q = q * t - 1.28717512e-1f;
  q = q * t - t;
  const float tail = 1.0f - exp_fast(q < -80.0f ? -80.0f : q);
  return t > 0.927734375f ? (x < 0 ? -tail : tail) : small;
}

}  // namespace rankine::RANKINE_ISA

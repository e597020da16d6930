#pragma once
#include <cstdint>

// The pair products of AVX512_BF16 in plain vector arithmetic, for instruction sets without it.
namespace rankine::RANKINE_ISA {

// sums[i] + a.low * b[i].low + a.high * b[i].high for bf16 pairs in 32-bit words.
template <class Floats, class Words>
[[gnu::always_inline]] static inline Floats dot_pairs(Floats sums, uint32_t a, Words b) {
  const float low = __builtin_bit_cast(float, a << 16);
  const float high = __builtin_bit_cast(float, a & 0xffff0000u);
  sums += high * (Floats)(b & 0xffff0000u);
  return sums + low * (Floats)(b << 16);
}

// The same with pairs in both.
template <class Floats, class Words>
[[gnu::always_inline]] static inline Floats dot_pairs(Floats sums, Words a, Words b) {
  sums += (Floats)(a & 0xffff0000u) * (Floats)(b & 0xffff0000u);
  return sums + (Floats)(a << 16) * (Floats)(b << 16);
}

}  // namespace rankine::RANKINE_ISA

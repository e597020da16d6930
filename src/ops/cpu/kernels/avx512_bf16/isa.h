#pragma once
#include <immintrin.h>

#include <cstdint>

// What kernels need to know of the instruction set avx512_bf16.
namespace rankine::RANKINE_ISA {

constexpr int vector_bytes = 64;
// The register tile of the small matrix products: rows x vectors of sums.
constexpr int register_rows = 6, register_vectors = 4;
// Whether bf16 attention multiplies pairs of bf16 (dot_pairs) instead of converting to f32.
constexpr bool has_pairs = true;

// sums[i] + a.low * b[i].low + a.high * b[i].high for bf16 pairs in 32-bit words.
template <class Floats, class Words>
[[gnu::always_inline]] static inline Floats dot_pairs(Floats sums, uint32_t a, Words b) {
  return (Floats)_mm512_dpbf16_ps((__m512)sums, (__m512bh)_mm512_set1_epi32(static_cast<int>(a)),
                                  (__m512bh)b);
}

// The same with pairs in both.
template <class Floats, class Words>
[[gnu::always_inline]] static inline Floats dot_pairs(Floats sums, Words a, Words b) {
  return (Floats)_mm512_dpbf16_ps((__m512)sums, (__m512bh)a, (__m512bh)b);
}

}  // namespace rankine::RANKINE_ISA

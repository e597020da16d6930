#pragma once
#include "ops/cpu/kernels/pairs_emulated.h"

// What kernels need to know of the instruction set avx2_pairs.
namespace rankine::RANKINE_ISA {

constexpr int vector_bytes = 32;
// The register tile of the small matrix products: rows x vectors of sums.
constexpr int register_rows = 6, register_vectors = 2;
// Whether bf16 attention multiplies pairs of bf16 (dot_pairs) instead of converting to f32.
constexpr bool has_pairs = true;

}  // namespace rankine::RANKINE_ISA

#pragma once
#include <cstdint>

#include "tensor/dtype.h"

// The part of oneDNN's interface that changed between 2.x and 3.x: describing a matrix product.
// CMake picks onednn_v2.cpp or onednn_v3.cpp; no vendor header is included here.
struct dnnl_engine;
struct dnnl_primitive_desc;

namespace rankine {

// c[m,n] (+)= a[m,k] b[k,n] (+ bias[n]), all contiguous; a transposed operand is stored [k,m] or
// [n,k].
struct Product {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false, bias = false, accumulate = false;
  DType input = DType::f32;   // of a, b and bias
  DType output = DType::f32;  // of c
  bool operator==(const Product&) const = default;
};

// A primitive description with a scratchpad the user provides; the caller owns it. `prefer_gemm`
// takes the "gemm:jit" implementation when there is one. Error{environment} when oneDNN refuses.
dnnl_primitive_desc* describe_product(const Product& product, dnnl_engine* engine,
                                      bool prefer_gemm);

}  // namespace rankine

#pragma once
#include "ops/cpu/kernels/table.h"
#include "ops/cpu/linear_plan.h"
#include "ops/cpu/matmul.h"
#include "tensor/tensor.h"

// Linear layers in types the processor cannot multiply: operands are converted to f32 piece by
// piece in the workspace, multiplied there, and the result is converted back.
namespace rankine {

struct LinearContext {
  const CastKernels& casts;
  Matmul& matmul;
  void* workspace;  // CpuOps::linear_workspace() bytes
  int threads;
};

// The f32 products' part of CpuOps::linear_workspace() for these sizes.
size_t converted_workspace(Matmul& matmul, const LinearSizes& sizes);

void converted_linear(const LinearContext& context, const Tensor& x, const Tensor& w,
                      const Tensor& bias, const Tensor& y);
void converted_input_grad(const LinearContext& context, const Tensor& dy, const Tensor& w,
                          const Tensor& dx);
void converted_weight_grad(const LinearContext& context, const Tensor& dy, const Tensor& x,
                           const Tensor& dw, bool accumulate);

}  // namespace rankine

#include <algorithm>

#include "base/error.h"
#include "ops/cpu/checks.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/linear_converted.h"

namespace rankine {
namespace {

LinearSizes sizes_of(const Tensor& x, const Tensor& y, const Tensor& w, DType dtype) {
  expect(x.shape.rank() == 2 && y.shape.rank() == 2 && x.shape[0] == y.shape[0],
         "activations [rows, width] with equal rows");
  expect(x.dtype == dtype && y.dtype == dtype, "one element type in a linear layer");
  expect(w.shape.rank() == 2 && w.shape[0] == y.shape[1] && w.shape[1] == x.shape[1],
         "a weight [outputs, inputs]");
  return {x.shape[0], x.shape[1], y.shape[1]};
}

void expect_bias(const Tensor& bias, const Tensor& w) {
  expect(bias.empty() || (bias.elements() == w.shape[0] && bias.dtype == w.dtype),
         "a bias [outputs] of the weight's type");
}

}  // namespace

void CpuOps::linear(const Tensor& x, const Tensor& w, const Tensor& bias, Tensor y) {
  prepare();
  const LinearSizes sizes = sizes_of(x, y, w, w.dtype);
  expect_bias(bias, w);
  void* scratch = layer_workspace(sizes.rows, sizes.inputs, sizes.outputs, w.dtype);
  if (!native(w.dtype))
    return converted_linear({kernels_.casts, *matmul_, scratch, threads_}, x, w, bias, y);
  matmul_->run(
      forward_product(sizes, w.dtype, !bias.empty()),
      {data_of<void>(x), data_of<void>(w), data_of<void>(bias), data_of<void>(y), scratch});
}

void CpuOps::linear_few(const Tensor& x, const Tensor& w, const Tensor& bias, Tensor y) {
  prepare();
  const LinearSizes sizes = sizes_of(x, y, w, w.dtype);
  expect_bias(bias, w);
  kernels_.few_rows.linear[storage_of(w.dtype)]({sizes.rows, sizes.inputs, sizes.outputs,
                                                 data_of<void>(x), data_of<void>(w),
                                                 data_of<void>(bias), data_of<void>(y), team()});
}

void CpuOps::linear_input_grad(const Tensor& dy, const Tensor& w, Tensor dx) {
  prepare();
  const LinearSizes sizes = sizes_of(dx, dy, w, w.dtype);
  void* scratch = layer_workspace(sizes.rows, sizes.inputs, sizes.outputs, w.dtype);
  if (!native(w.dtype))
    return converted_input_grad({kernels_.casts, *matmul_, scratch, threads_}, dy, w, dx);
  matmul_->run(input_grad_product(sizes, w.dtype, false),
               {data_of<void>(dy), data_of<void>(w), nullptr, data_of<void>(dx), scratch});
}

void CpuOps::linear_weight_grad(const Tensor& dy, const Tensor& x, Tensor dw, bool accumulate) {
  prepare();
  const LinearSizes sizes = sizes_of(x, dy, dw, x.dtype);
  expect(dw.dtype == DType::f32, "an f32 weight gradient");
  void* scratch = layer_workspace(sizes.rows, sizes.inputs, sizes.outputs, x.dtype);
  if (!native(x.dtype))
    return converted_weight_grad({kernels_.casts, *matmul_, scratch, threads_}, dy, x, dw,
                                 accumulate);
  matmul_->run(weight_grad_product(sizes, x.dtype, accumulate),
               {data_of<void>(dy), data_of<void>(x), nullptr, data_of<void>(dw), scratch});
}

size_t CpuOps::linear_workspace(int64_t rows, int64_t inputs, int64_t outputs, DType dtype) const {
  prepare();
  const LinearSizes sizes{rows, inputs, outputs};
  size_t bytes = kernels_.elements.bias_grad_workspace(rows, outputs);
  if (!native(dtype)) return std::max(bytes, converted_workspace(*matmul_, sizes));
  for (const bool flag : {false, true})
    for (const Product& product :
         {forward_product(sizes, dtype, flag), input_grad_product(sizes, dtype, false),
          weight_grad_product(sizes, dtype, flag)})
      bytes = std::max(bytes, matmul_->scratch_bytes(product));
  return bytes;
}

void* CpuOps::layer_workspace(int64_t rows, int64_t inputs, int64_t outputs, DType dtype) const {
  return workspace(linear_workspace(rows, inputs, outputs, dtype));
}

}  // namespace rankine

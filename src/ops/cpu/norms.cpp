#include "ops/cpu/checks.h"
#include "ops/cpu/cpu_ops.h"

namespace rankine {
namespace {

int64_t stats_per_row(NormKind kind) {
  return kind == NormKind::layer ? 2 : 1;
}

// Checks what all head norms share and fills in the sizes.
HeadNormCall head_norm_call(const AttentionShape& shape, const Tensor& qkv, const Tensor& q_weight,
                            const Tensor& k_weight, const Tensor& rstd) {
  const DType dtype = qkv.dtype;
  const int64_t rows = shape.rows(), normed = shape.heads + shape.kv_heads;
  expect(holds(qkv, dtype, rows * shape.qkv_width()), "qkv [rows, (heads + 2 kv_heads) head_dim]");
  expect(holds(q_weight, dtype, shape.head_dim) && holds(k_weight, dtype, shape.head_dim),
         "head norm weights [head_dim] of the type of qkv");
  expect(holds(rstd, DType::f32, rows * normed), "rstd f32 [rows, heads + kv_heads]");
  return {.rows = rows,
          .heads = shape.heads,
          .kv_heads = shape.kv_heads,
          .head_dim = shape.head_dim,
          .epsilon = 0,
          .qkv = data_of<void>(qkv),
          .q_weight = data_of<void>(q_weight),
          .k_weight = data_of<void>(k_weight),
          .out = nullptr,
          .rstd = data_of<float>(rstd),
          .dq_weight = nullptr,
          .dk_weight = nullptr,
          .accumulate = false,
          .workspace = nullptr,
          .threads = 1};
}

}  // namespace

void CpuOps::norm(const NormInputs& in, Tensor sum, Tensor y, Tensor stats) {
  prepare();
  const DType dtype = in.x.dtype;
  const int64_t rows = rows_of(in.x), width = width_of(in.x);
  expect(holds(y, dtype, rows * width), "a norm's output like its input");
  expect(holds(in.weight, dtype, width) && empty_or_holds(in.bias, dtype, width),
         "a norm's weight and bias [width] of the input's type");
  expect(
      empty_or_holds(in.residual, dtype, rows * width) && empty_or_holds(sum, dtype, rows * width),
      "a norm's residual and sum like its input");
  expect(in.residual.empty() || !sum.empty(), "a place for the sum with the residual");
  expect(empty_or_holds(stats, DType::f32, rows * stats_per_row(in.kind)),
         "norm statistics f32 [rows, 2] or [rows, 1]");
  kernels_.norms.norm[storage_of(dtype)]({.layer = in.kind == NormKind::layer,
                                          .epsilon = in.epsilon,
                                          .rows = rows,
                                          .width = width,
                                          .x = data_of<void>(in.x),
                                          .residual = data_of<void>(in.residual),
                                          .weight = data_of<void>(in.weight),
                                          .bias = data_of<void>(in.bias),
                                          .sum = data_of<void>(sum),
                                          .y = data_of<void>(y),
                                          .stats = data_of<float>(stats),
                                          .threads = threads_});
}

void CpuOps::norm_again(NormKind kind, const Tensor& x, const Tensor& stats, const Tensor& weight,
                        const Tensor& bias, Tensor y) {
  prepare();
  const int64_t rows = rows_of(x), width = width_of(x);
  expect(holds(y, x.dtype, rows * width), "a norm's output like its input");
  expect(holds(weight, x.dtype, width) && empty_or_holds(bias, x.dtype, width),
         "a norm's weight and bias [width] of the input's type");
  expect(holds(stats, DType::f32, rows * stats_per_row(kind)),
         "norm statistics f32 [rows, 2] or [rows, 1]");
  kernels_.norms.norm_again[storage_of(x.dtype)]({.layer = kind == NormKind::layer,
                                                  .epsilon = 0,
                                                  .rows = rows,
                                                  .width = width,
                                                  .x = data_of<void>(x),
                                                  .residual = nullptr,
                                                  .weight = data_of<void>(weight),
                                                  .bias = data_of<void>(bias),
                                                  .sum = nullptr,
                                                  .y = data_of<void>(y),
                                                  .stats = data_of<float>(stats),
                                                  .threads = threads_});
}

void CpuOps::norm_grad(const NormGrad& in, Tensor dx, Tensor dweight, Tensor dbias) {
  prepare();
  const DType dtype = in.x.dtype;
  const int64_t rows = rows_of(in.x), width = width_of(in.x);
  expect(holds(in.dy, dtype, rows * width) && holds(dx, dtype, rows * width) &&
             empty_or_holds(in.residual, dtype, rows * width),
         "a norm's gradients like its input");
  expect(holds(in.weight, dtype, width), "a norm's weight [width] of the input's type");
  expect(holds(in.stats, DType::f32, rows * stats_per_row(in.kind)),
         "norm statistics f32 [rows, 2] or [rows, 1]");
  expect(holds(dweight, DType::f32, width) && empty_or_holds(dbias, DType::f32, width),
         "gradients of a norm's weight and bias f32 [width]");
  expect(dbias.empty() || in.kind == NormKind::layer, "no bias gradient of an rms norm");
  kernels_.norms.norm_grad[storage_of(dtype)]({.layer = in.kind == NormKind::layer,
                                               .accumulate = in.accumulate,
                                               .rows = rows,
                                               .width = width,
                                               .x = data_of<void>(in.x),
                                               .weight = data_of<void>(in.weight),
                                               .dy = data_of<void>(in.dy),
                                               .residual = data_of<void>(in.residual),
                                               .stats = data_of<float>(in.stats),
                                               .dx = data_of<void>(dx),
                                               .dweight = data_of<float>(dweight),
                                               .dbias = data_of<float>(dbias),
                                               .workspace = workspace(norm_workspace(rows, width)),
                                               .threads = threads_});
}

size_t CpuOps::norm_workspace(int64_t rows, int64_t width) const {
  return kernels_.norms.workspace(rows, width);
}

void CpuOps::head_norm(const AttentionShape& shape, float epsilon, const Tensor& qkv,
                       const Tensor& q_weight, const Tensor& k_weight, Tensor out, Tensor rstd) {
  prepare();
  HeadNormCall call = head_norm_call(shape, qkv, q_weight, k_weight, rstd);
  expect(holds(out, qkv.dtype, qkv.elements()), "a head norm's output like qkv");
  call.epsilon = epsilon;
  call.out = data_of<void>(out);
  call.threads = threads_;
  kernels_.head_norms.head_norm[storage_of(qkv.dtype)](call);
}

void CpuOps::head_norm_grad(const AttentionShape& shape, const Tensor& qkv, const Tensor& rstd,
                            const Tensor& q_weight, const Tensor& k_weight, Tensor dqkv,
                            Tensor dq_weight, Tensor dk_weight, bool accumulate) {
  prepare();
  HeadNormCall call = head_norm_call(shape, qkv, q_weight, k_weight, rstd);
  expect(holds(dqkv, qkv.dtype, qkv.elements()), "the gradient of qkv like qkv");
  expect(
      holds(dq_weight, DType::f32, shape.head_dim) && holds(dk_weight, DType::f32, shape.head_dim),
      "gradients of the head norm weights f32 [head_dim]");
  call.out = data_of<void>(dqkv);
  call.dq_weight = data_of<float>(dq_weight);
  call.dk_weight = data_of<float>(dk_weight);
  call.accumulate = accumulate;
  call.workspace = workspace(kernels_.head_norms.workspace(shape.rows(), shape.head_dim));
  call.threads = threads_;
  kernels_.head_norms.head_norm_grad[storage_of(qkv.dtype)](call);
}

}  // namespace rankine

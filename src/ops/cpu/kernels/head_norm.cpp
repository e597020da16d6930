#include <cstring>

#include "ops/cpu/kernels/blocks.h"
#include "ops/cpu/kernels/parts.h"
#include "ops/cpu/kernels/scalar.h"

namespace rankine::RANKINE_ISA {
namespace {

// Returns 1/rms of the head.
template <class S>
float normalize_head(const S* x, const S* weight, float epsilon, int64_t head_dim, S* y) {
  const float squares = lane_sum(head_dim, [x](int64_t d) { return up(x[d]) * up(x[d]); });
  const float scale = 1.0f / __builtin_sqrtf(squares / static_cast<float>(head_dim) + epsilon);
#pragma omp simd
  for (int64_t d = 0; d < head_dim; ++d) down(y[d], up(x[d]) * scale * up(weight[d]));
  return scale;
}

template <class S>
void head_norm(const HeadNormCall& call) {
  const int64_t dim = call.head_dim, normed = call.heads + call.kv_heads;
  const int64_t width = (normed + call.kv_heads) * dim;
  const S *qkv = static_cast<const S*>(call.qkv), *q_weight = static_cast<const S*>(call.q_weight),
          *k_weight = static_cast<const S*>(call.k_weight);
  S* out = static_cast<S*>(call.out);
  for_rows(call.rows, width, call.threads, [&, qkv, q_weight, k_weight, out](int64_t r) {
    const S* x = qkv + r * width;
    S* y = out + r * width;
    for (int64_t h = 0; h < normed; ++h) {
      const S* weight = h < call.heads ? q_weight : k_weight;
      call.rstd[r * normed + h] =
          normalize_head(x + h * dim, weight, call.epsilon, dim, y + h * dim);
    }
    if (y != x)
      std::memcpy(y + normed * dim, x + normed * dim,
                  static_cast<size_t>(call.kv_heads * dim) * sizeof(S));
  });
}

template <class S>
void head_grad(const S* x, const S* weight, float scale, int64_t head_dim, S* dx, float* dweight) {
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (int64_t d = 0; d < head_dim; ++d) {
    const float dy = up(dx[d]), unit = up(x[d]) * scale;
    dweight[d] += dy * unit;
    dot += dy * up(weight[d]) * unit;
  }
  dot /= static_cast<float>(head_dim);
#pragma omp simd
  for (int64_t d = 0; d < head_dim; ++d)
    down(dx[d], scale * (up(dx[d]) * up(weight[d]) - up(x[d]) * scale * dot));
}

size_t workspace(int64_t rows, int64_t head_dim) {
  return static_cast<size_t>(slab_count(rows, head_dim) * 2 * head_dim) * sizeof(float);
}

template <class S>
void head_norm_grad(const HeadNormCall& call) {
  const int64_t dim = call.head_dim, normed = call.heads + call.kv_heads;
  const int64_t width = (normed + call.kv_heads) * dim;
  const S *qkv = static_cast<const S*>(call.qkv), *q_weight = static_cast<const S*>(call.q_weight),
          *k_weight = static_cast<const S*>(call.k_weight);
  S* dqkv = static_cast<S*>(call.out);
  float* partial = static_cast<float*>(call.workspace);
  for_slabs(call.rows, dim, call.threads,
            [&, qkv, q_weight, k_weight, dqkv, partial](int64_t slab, int64_t first, int64_t rows) {
              float* sums = partial + slab * 2 * dim;
              std::memset(sums, 0, static_cast<size_t>(2 * dim) * sizeof(float));
              for (int64_t r = first; r < first + rows; ++r)
                for (int64_t h = 0; h < normed; ++h) {
                  const bool query = h < call.heads;
                  const int64_t at = r * width + h * dim;
                  head_grad(qkv + at, query ? q_weight : k_weight, call.rstd[r * normed + h], dim,
                            dqkv + at, query ? sums : sums + dim);
                }
            });
  const int64_t slabs = slab_count(call.rows, dim);
  combine_slabs(partial, slabs, 2 * dim, call.dq_weight, dim, call.accumulate);
  combine_slabs(partial + dim, slabs, 2 * dim, call.dk_weight, dim, call.accumulate);
}

}  // namespace

HeadNormKernels head_norm_kernels() {
  return {.head_norm = {head_norm<float>, head_norm<Bf16>, head_norm<F16>},
          .head_norm_grad = {head_norm_grad<float>, head_norm_grad<Bf16>, head_norm_grad<F16>},
          .workspace = workspace};
}

}  // namespace rankine::RANKINE_ISA

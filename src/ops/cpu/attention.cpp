#include <algorithm>
#include <vector>

#include "base/error.h"
#include "ops/cpu/checks.h"
#include "ops/cpu/cpu_ops.h"

namespace rankine {
namespace {

void expect_shape(const AttentionShape& shape) {
  expect(shape.batch > 0 && shape.tokens > 0 && shape.head_dim > 0 && shape.kv_heads > 0 &&
             shape.heads > 0 && shape.heads % shape.kv_heads == 0 && shape.window >= 0,
         "an attention shape with positive extents and heads a multiple of kv_heads");
}

void expect_rows(const Tensor& x, int64_t rows, int64_t width, DType dtype) {
  expect(x.elements() == rows * width && x.dtype == dtype, "rows of the attention's shape");
}

AttentionCall call_of(const AttentionShape& shape, int threads) {
  expect_shape(shape);
  AttentionCall call{};
  call.batch = shape.batch;
  call.tokens = shape.tokens;
  call.heads = shape.heads;
  call.kv_heads = shape.kv_heads;
  call.head_dim = shape.head_dim;
  call.window = shape.window;
  call.threads = threads;
  if (!shape.first_keys.empty()) {
    expect_rows(shape.first_keys, shape.rows(), 1, DType::i32);
    call.first_keys = data_of<const int32_t>(shape.first_keys);
  }
  return call;
}

CachedAttentionCall cached_call_of(const AttentionShape& shape, int64_t positions, int threads) {
  expect_shape(shape);
  CachedAttentionCall call{};
  call.tokens = shape.tokens;
  call.heads = shape.heads;
  call.kv_heads = shape.kv_heads;
  call.head_dim = shape.head_dim;
  call.window = shape.window;
  call.positions = positions;
  call.threads = threads;
  return call;
}

}  // namespace

void CpuOps::attention(const AttentionShape& shape, const Tensor& qkv, Tensor out, Tensor lse) {
  prepare();
  AttentionCall call = call_of(shape, threads_);
  expect_rows(qkv, shape.rows(), shape.qkv_width(), qkv.dtype);
  expect_rows(out, shape.rows(), shape.heads * shape.head_dim, qkv.dtype);
  expect_rows(lse, shape.rows(), shape.heads, DType::f32);
  call.qkv = data_of<void>(qkv);
  call.out = data_of<void>(out);
  call.lse = data_of<float>(lse);
  call.workspace = workspace(attention_workspace(shape, qkv.dtype));
  kernels_.attention.attention[storage_of(qkv.dtype)](call);
}

void CpuOps::attention_grad(const AttentionShape& shape, const Tensor& qkv, const Tensor& out,
                            const Tensor& dout, const Tensor& lse, Tensor dqkv) {
  prepare();
  AttentionCall call = call_of(shape, threads_);
  expect_rows(qkv, shape.rows(), shape.qkv_width(), qkv.dtype);
  expect_rows(dqkv, shape.rows(), shape.qkv_width(), qkv.dtype);
  expect_rows(out, shape.rows(), shape.heads * shape.head_dim, qkv.dtype);
  expect_rows(dout, shape.rows(), shape.heads * shape.head_dim, qkv.dtype);
  expect_rows(lse, shape.rows(), shape.heads, DType::f32);
  call.qkv = data_of<void>(qkv);
  call.out = data_of<void>(out);
  call.dout = data_of<void>(dout);
  call.lse = data_of<float>(lse);
  call.dqkv = data_of<void>(dqkv);
  call.workspace = workspace(attention_workspace(shape, qkv.dtype));
  kernels_.attention.attention_grad[storage_of(qkv.dtype)](call);
}

size_t CpuOps::attention_workspace(const AttentionShape& shape, DType dtype) const {
  return kernels_.attention.workspace[storage_of(dtype)](call_of(shape, threads_));
}

void CpuOps::attention_cached(const AttentionShape& shape, const Tensor& qkv,
                              std::span<const KvCache> caches, Tensor out) {
  prepare();
  expect(shape.batch == static_cast<int64_t>(caches.size()), "a cache for each sequence");
  expect_rows(qkv, shape.rows(), shape.qkv_width(), qkv.dtype);
  expect_rows(out, shape.rows(), shape.heads * shape.head_dim, qkv.dtype);
  std::vector<CachedAttentionCall> calls;
  size_t needed = 0;
  for (const KvCache& cache : caches) {
    expect(cache.keys.shape.rank() == 3 && cache.keys.shape == cache.values.shape &&
               cache.keys.shape[0] == shape.kv_heads && cache.keys.shape[2] == shape.head_dim &&
               cache.keys.dtype == qkv.dtype && cache.values.dtype == qkv.dtype,
           "caches [kv_heads, positions, head_dim] of the activations' type");
    const int64_t positions = cache.keys.shape[1];
    expect(cache.past >= 0 && cache.past + shape.tokens <= positions,
           "new tokens within the cache");
    const auto sequence = static_cast<int64_t>(calls.size());
    CachedAttentionCall& call = calls.emplace_back(cached_call_of(shape, positions, threads_));
    call.past = cache.past;
    call.qkv = data_of<void>(qkv.rows(sequence * shape.tokens, shape.tokens));
    call.k_cache = data_of<void>(cache.keys);
    call.v_cache = data_of<void>(cache.values);
    call.out = data_of<void>(out.rows(sequence * shape.tokens, shape.tokens));
    if (shape.tokens == 1) call.team = team();
    needed = std::max(needed, kernels_.attention.cached_workspace(call));
  }
  for (CachedAttentionCall& call : calls) call.workspace = workspace(needed);
  kernels_.attention.attention_cached[storage_of(qkv.dtype)](calls.data(), shape.batch);
}

size_t CpuOps::attention_cached_workspace(const AttentionShape& shape, int64_t positions) const {
  return kernels_.attention.cached_workspace(cached_call_of(shape, positions, threads_));
}

}  // namespace rankine

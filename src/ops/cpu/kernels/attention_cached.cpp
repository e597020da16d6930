#include <omp.h>

#include "ops/cpu/kernels/attention_parts.h"

namespace rankine::RANKINE_ISA {
namespace {

constexpr int64_t row_block = 8;

// Query heads of one key/value head and one row: scores of all keys, softmax, weighted values.
template <class S>
class Decoder {
 public:
  Decoder(const CachedAttentionCall& call, float* scratch)
      : call_(call),
        group_(call.heads / call.kv_heads),
        scores_(scratch),
        queries_(scores_ + call.positions),
        sums_(queries_ + call.head_dim) {}

  static int64_t scratch_floats(const CachedAttentionCall& call) {
    return round_up(call.positions + 2 * call.head_dim, 16);
  }

  void run(int64_t row, int64_t kv_head) {
    const int64_t dim = call_.head_dim, last = call_.past + row;
    const int64_t first = first_key(call_.window, last);
    const S* keys = static_cast<const S*>(call_.k_cache) + kv_head * call_.positions * dim;
    const S* values = static_cast<const S*>(call_.v_cache) + kv_head * call_.positions * dim;
    for (int64_t head = kv_head * group_; head < (kv_head + 1) * group_; ++head) {
      const S* q = static_cast<const S*>(call_.qkv) +
                   (row * (call_.heads + 2 * call_.kv_heads) + head) * dim;
      const float scale = log2_e / __builtin_sqrtf(static_cast<float>(dim));
      for (int64_t d = 0; d < dim; ++d) queries_[d] = up(q[d]) * scale;
      const float inverse = 1.0f / softmax(keys, first, last);
      weigh(values, first, last);
      S* out = static_cast<S*>(call_.out) + (row * call_.heads + head) * dim;
      for (int64_t d = 0; d < dim; ++d) down(out[d], sums_[d] * inverse);
    }
  }

 private:
  // scores_[j] = 2^(score - maximum) for keys first..last; returns their sum.
  float softmax(const S* keys, int64_t first, int64_t last) {
    float maximum = first_maximum;
    for (int64_t j = first; j <= last; ++j) {
      const S* key = keys + j * call_.head_dim;
      float score = 0;
#pragma omp simd reduction(+ : score)
      for (int64_t d = 0; d < call_.head_dim; ++d) score += queries_[d] * up(key[d]);
      scores_[j] = score;
      maximum = score > maximum ? score : maximum;
    }
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = first; j <= last; ++j) {
      scores_[j] = exp2_fast(scores_[j] - maximum);
      sum += scores_[j];
    }
    return sum;
  }

  void weigh(const S* values, int64_t first, int64_t last) {
    const int64_t dim = call_.head_dim;
    for (int64_t d = 0; d < dim; ++d) sums_[d] = 0;
    for (int64_t j = first; j <= last; ++j) {
      const S* value = values + j * dim;
      const float weight = scores_[j];
#pragma omp simd
      for (int64_t d = 0; d < dim; ++d) sums_[d] += weight * up(value[d]);
    }
  }

  const CachedAttentionCall& call_;
  int64_t group_;
  float *scores_, *queries_, *sums_;
};

// Copies k and v of the new rows behind the `past` ones.
template <class S>
void store_rows(const CachedAttentionCall& call) {
  const int64_t dim = call.head_dim, width = (call.heads + 2 * call.kv_heads) * dim;
#pragma omp parallel for schedule(static) num_threads(call.threads)
  for (int64_t head = 0; head < call.kv_heads; ++head)
    for (int64_t t = 0; t < call.tokens; ++t) {
      const S* k = static_cast<const S*>(call.qkv) + t * width + (call.heads + head) * dim;
      const int64_t to = (head * call.positions + call.past + t) * dim;
      const size_t bytes = static_cast<size_t>(dim) * sizeof(S);
      __builtin_memcpy(static_cast<S*>(call.k_cache) + to, k, bytes);
      __builtin_memcpy(static_cast<S*>(call.v_cache) + to, k + call.kv_heads * dim, bytes);
    }
}

}  // namespace

size_t cached_workspace(const CachedAttentionCall& call) {
  return static_cast<size_t>(Decoder<float>::scratch_floats(call) * call.threads) * sizeof(float);
}

template <class S>
void attention_cached(const CachedAttentionCall& call) {
  store_rows<S>(call);
  const int64_t blocks = (call.tokens + row_block - 1) / row_block;
#pragma omp parallel num_threads(call.threads)
  {
    Decoder<S> decoder(call, static_cast<float*>(call.workspace) +
                                 omp_get_thread_num() * Decoder<S>::scratch_floats(call));
#pragma omp for schedule(dynamic, 1)
    for (int64_t task = 0; task < blocks * call.kv_heads; ++task) {
      const int64_t begin = task / call.kv_heads * row_block;
      const int64_t end = smaller_of(begin + row_block, call.tokens);
      for (int64_t row = begin; row < end; ++row) decoder.run(row, task % call.kv_heads);
    }
  }
}

template void attention_cached<float>(const CachedAttentionCall& call);
template void attention_cached<Bf16>(const CachedAttentionCall& call);
template void attention_cached<F16>(const CachedAttentionCall& call);

}  // namespace rankine::RANKINE_ISA

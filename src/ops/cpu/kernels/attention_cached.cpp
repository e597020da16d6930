#include <omp.h>

#include "ops/cpu/kernels/attention_parts.h"
#include "ops/cpu/kernels/on_team.h"
#include "ops/cpu/kernels/vectors.h"

namespace rankine::RANKINE_ISA {
namespace {

constexpr int64_t row_block = 8;

// Of each thread.
int64_t scratch_floats(const CachedAttentionCall& call) {
  return round_up(call.positions + 2 * call.head_dim, 16);
}

// Query heads of one key/value head and one row: scores of all keys, softmax, weighted values.
// `Dim` is the head's size, 0: any; a known one keeps sums in registers.
template <class S, int64_t Dim>
class Decoder {
 public:
  Decoder(const CachedAttentionCall& call, float* scratch)
      : call_(call),
        group_(call.heads / call.kv_heads),
        dim_(call.head_dim),
        scores_(scratch),
        queries_(scores_ + call.positions),
        sums_(queries_ + call.head_dim) {}

  void run(int64_t row, int64_t kv_head) {
    const int64_t dim = dim_, last = call_.past + row;
    const int64_t first = first_key(call_.window, last);
    const S* keys = static_cast<const S*>(call_.k_cache) + kv_head * call_.positions * dim;
    const S* values = static_cast<const S*>(call_.v_cache) + kv_head * call_.positions * dim;
    for (int64_t head = kv_head * group_; head < (kv_head + 1) * group_; ++head) {
      const S* q = static_cast<const S*>(call_.qkv) +
                   (row * (call_.heads + 2 * call_.kv_heads) + head) * dim;
      const float scale = log2_e / __builtin_sqrtf(static_cast<float>(dim));
      for (int64_t d = 0; d < dim; ++d) queries_[d] = up(q[d]) * scale;
      const float inverse = 1.0f / softmax(keys, values, first, last);
      weigh(values, keys + call_.positions * dim, first, last);
      S* out = static_cast<S*>(call_.out) + (row * call_.heads + head) * dim;
      for (int64_t d = 0; d < dim; ++d) down(out[d], sums_[d] * inverse);
    }
  }

 private:
  // scores_[j] = 2^(score - maximum) for keys first..last; returns their sum.
  float softmax(const S* keys, const S* values, int64_t first, int64_t last) {
    score(keys, values, first, last);
    float maximum = first_maximum;
#pragma omp simd reduction(max : maximum)
    for (int64_t j = first; j <= last; ++j) maximum = scores_[j] > maximum ? scores_[j] : maximum;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = first; j <= last; ++j) {
      scores_[j] = exp2_fast(scores_[j] - maximum);
      sum += scores_[j];
    }
    return sum;
  }

  // scores_[j] = query times key. Keys of a known size go by as many at a time as there are lanes,
  // so that their products are added up all at once; their values are on the way meanwhile.
  void score(const S* keys, [[maybe_unused]] const S* values, int64_t first, int64_t last) {
    if constexpr (Dim > 0) {
      Floats query[vectors];
      for (int v = 0; v < vectors; ++v) query[v] = load(queries_ + v * lanes);
      alignas(vector_bytes) float sums[lanes * lanes] = {}, columns[lanes * lanes];
      for (int64_t j = first; j <= last; j += lanes) {
        const int64_t count = smaller_of(lanes, last + 1 - j);
        for (int64_t k = 0; k < count; ++k) {
          prefetch_row<false>(keys + (j + k + prefetch_distance) * Dim, Dim);
          prefetch_row<false>(values + (j + k) * Dim, Dim);
          Floats sum{};
          for (int v = 0; v < vectors; ++v)
            sum += query[v] * load(keys + (j + k) * Dim + v * lanes);
          store(sums + k * lanes, sum);
        }
        transpose_square(sums, columns, lanes);
        Floats totals = load(columns);
        for (int lane = 1; lane < lanes; ++lane) totals += load(columns + lane * lanes);
        store(columns, totals);
        __builtin_memcpy(scores_ + j, columns, static_cast<size_t>(count) * sizeof(float));
      }
    } else {
      for (int64_t j = first; j <= last; ++j) {
        const S* key = keys + j * dim_;
        float score = 0;
#pragma omp simd reduction(+ : score)
        for (int64_t d = 0; d < dim_; ++d) score += queries_[d] * up(key[d]);
        scores_[j] = score;
      }
    }
  }

  // sums_ = the values by their weights. The keys of the next head are on the way meanwhile.
  void weigh(const S* values, [[maybe_unused]] const S* next_keys, int64_t first, int64_t last) {
    if constexpr (Dim > 0) {
      Floats sums[vectors] = {};
      for (int64_t j = first; j <= last; ++j) {
        prefetch_row<false>(next_keys + j * Dim, Dim);
        for (int v = 0; v < vectors; ++v)
          sums[v] += scores_[j] * load(values + j * Dim + v * lanes);
      }
      for (int v = 0; v < vectors; ++v) store(sums_ + v * lanes, sums[v]);
    } else {
      for (int64_t d = 0; d < dim_; ++d) sums_[d] = 0;
      for (int64_t j = first; j <= last; ++j) {
        const S* value = values + j * dim_;
        const float weight = scores_[j];
#pragma omp simd
        for (int64_t d = 0; d < dim_; ++d) sums_[d] += weight * up(value[d]);
      }
    }
  }

  static constexpr int vectors = Dim / lanes;
  const CachedAttentionCall& call_;
  int64_t group_, dim_;
  float *scores_, *queries_, *sums_;
};

// Copies k and v of the new rows behind the `past` ones.
template <class S>
void store_rows(const CachedAttentionCall& call, int64_t head) {
  const int64_t dim = call.head_dim, width = (call.heads + 2 * call.kv_heads) * dim;
  for (int64_t t = 0; t < call.tokens; ++t) {
    const S* k = static_cast<const S*>(call.qkv) + t * width + (call.heads + head) * dim;
    const int64_t to = (head * call.positions + call.past + t) * dim;
    const size_t bytes = static_cast<size_t>(dim) * sizeof(S);
    __builtin_memcpy(static_cast<S*>(call.k_cache) + to, k, bytes);
    __builtin_memcpy(static_cast<S*>(call.v_cache) + to, k + call.kv_heads * dim, bytes);
  }
}

template <class S, int64_t Dim>
Decoder<S, Dim> decoder_of(const CachedAttentionCall& call, int thread) {
  return {call, static_cast<float*>(call.workspace) + thread * scratch_floats(call)};
}

// One token of each sequence.
template <class S, int64_t Dim>
void decode(const CachedAttentionCall* calls, int64_t count) {
  const int64_t heads = calls->kv_heads, all = count * heads;
  on_team(calls->team, true, [=](TeamPart part) {
    for (int64_t i = at_share(all, part.from); i < at_share(all, part.to); ++i) {
      const CachedAttentionCall& call = calls[i / heads];
      store_rows<S>(call, i % heads);
      decoder_of<S, Dim>(call, part.thread).run(0, i % heads);
    }
  });
}

template <class S, int64_t Dim>
void attend(const CachedAttentionCall& call) {
  const int64_t blocks = (call.tokens + row_block - 1) / row_block;
#pragma omp parallel num_threads(call.threads)
  {
    Decoder<S, Dim> decoder = decoder_of<S, Dim>(call, omp_get_thread_num());
#pragma omp for schedule(static)  // and waits: rows of several tasks read a head's keys
    for (int64_t head = 0; head < call.kv_heads; ++head) store_rows<S>(call, head);
#pragma omp for schedule(dynamic, 1)
    for (int64_t task = 0; task < blocks * call.kv_heads; ++task) {
      const int64_t begin = task / call.kv_heads * row_block;
      const int64_t end = smaller_of(begin + row_block, call.tokens);
      for (int64_t row = begin; row < end; ++row) decoder.run(row, task % call.kv_heads);
    }
  }
}

}  // namespace

size_t cached_workspace(const CachedAttentionCall& call) {
  return static_cast<size_t>(scratch_floats(call) * call.threads) * sizeof(float);
}

namespace {

template <class S, int64_t Dim>
void run(const CachedAttentionCall* calls, int64_t count) {
  if (calls->tokens == 1) return decode<S, Dim>(calls, count);
  for (int64_t i = 0; i < count; ++i) attend<S, Dim>(calls[i]);
}

}  // namespace

template <class S>
void attention_cached(const CachedAttentionCall* calls, int64_t count) {
  if (calls->head_dim == 64) return run<S, 64>(calls, count);
  if (calls->head_dim == 128) return run<S, 128>(calls, count);
  run<S, 0>(calls, count);
}

template void attention_cached<float>(const CachedAttentionCall* calls, int64_t count);
template void attention_cached<Bf16>(const CachedAttentionCall* calls, int64_t count);
template void attention_cached<F16>(const CachedAttentionCall* calls, int64_t count);

}  // namespace rankine::RANKINE_ISA

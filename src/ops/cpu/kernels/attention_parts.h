#pragma once
#include "ops/cpu/kernels/attention_pack.h"
#include "ops/cpu/kernels/table.h"

// Attention in tiles: what its files share.
namespace rankine::RANKINE_ISA {

constexpr float masked_score = -1e30f;  // far below first_maximum: its probability is exactly 0
constexpr float first_maximum = -1e20f;
constexpr float log2_e = 1.44269504f;

// Hands out pieces of a thread's workspace in order, each 64-aligned. With base null it only
// counts.
struct Carver {
  char* base;
  int64_t used = 0;
  template <class T>
  [[gnu::always_inline]] T* take(int64_t count) {
    T* piece = base == nullptr ? nullptr : reinterpret_cast<T*>(base + used);
    used += round_up(count * static_cast<int64_t>(sizeof(T)), 64);
    return piece;
  }
};

// First key that query i may see.
[[gnu::always_inline]] static inline int64_t first_key(int64_t window, int64_t i) {
  return window > 0 && i >= window ? i - window + 1 : 0;
}

// The same within the query's document.
[[gnu::always_inline]] static inline int64_t first_key(const AttentionCall& call, int64_t batch,
                                                       int64_t i) {
  const int64_t first = first_key(call.window, i);
  if (call.first_keys == nullptr) return first;
  return larger_of(first, call.first_keys[batch * call.tokens + i]);
}

template <class S>
size_t forward_workspace(const AttentionCall& call);
template <class S>
size_t backward_workspace(const AttentionCall& call);
template <class S>
void attention_forward(const AttentionCall& call);
template <class S>
void attention_backward(const AttentionCall& call);
template <class S>
void attention_cached(const CachedAttentionCall* calls, int64_t count);
size_t cached_workspace(const CachedAttentionCall& call);

}  // namespace rankine::RANKINE_ISA

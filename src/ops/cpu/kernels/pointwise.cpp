#include <cstring>

#include "ops/cpu/kernels/blocks.h"
#include "ops/cpu/kernels/parts.h"
#include "ops/cpu/kernels/philox.h"
#include "ops/cpu/kernels/scalar.h"

namespace rankine::RANKINE_ISA {
namespace {

template <class S>
void add_block(const S* a, const S* b, S* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) down(y[i], up(a[i]) + up(b[i]));
}

template <class S>
void add(const void* a, const void* b, void* y, int64_t count, int threads) {
  const S* left = static_cast<const S*>(a);
  const S* right = static_cast<const S*>(b);
  S* to = static_cast<S*>(y);
  for_blocks(count, threads, [=](int64_t first, int64_t n) {
    add_block(left + first, right + first, to + first, n);
  });
}

// Drops elements [0, count); `words` are their random words.
template <class S>
void drop(S* x, const uint32_t* words, int64_t count, float probability, float scale) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float unit = static_cast<float>(static_cast<int32_t>(words[i] >> 8)) * 0x1p-24f;
    down(x[i], unit < probability ? 0.0f : up(x[i]) * scale);
  }
}

template <class S>
void dropout(const DropoutCall& call) {
  S* x = static_cast<S*>(call.x);
  const float scale = 1.0f / (1.0f - call.probability);
  for_blocks(call.count, call.threads, [&call, x, scale](int64_t first, int64_t count) {
    constexpr int64_t counters = 64;
    alignas(64) uint32_t words[4 * counters];
    for (int64_t i = 0; i < count; i += 4 * counters) {
      const uint64_t counter = (call.first_index + static_cast<uint64_t>(first + i)) / 4;
      philox_words<counters>({call.key_low, call.key_high}, counter, call.stream, words);
      drop(x + first + i, words, smaller(4 * counters, count - i), call.probability, scale);
    }
  });
}

// sums[c] = the column sums of `rows` rows.
template <class S>
void column_sums(const S* x, int64_t rows, int64_t width, float* sums) {
  std::memset(sums, 0, static_cast<size_t>(width) * sizeof(float));
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const S *a = x + r * width, *b = a + width, *c = b + width, *d = c + width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) sums[i] += (up(a[i]) + up(b[i])) + (up(c[i]) + up(d[i]));
  }
  for (; r < rows; ++r) {
    const S* a = x + r * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) sums[i] += up(a[i]);
  }
}

size_t bias_grad_workspace(int64_t rows, int64_t width) {
  return static_cast<size_t>(slab_count(rows, width) * width) * sizeof(float);
}

template <class S>
void bias_grad(const BiasGradCall& call) {
  const S* dy = static_cast<const S*>(call.dy);
  float* partial = static_cast<float*>(call.workspace);
  const int64_t width = call.width;
  for_slabs(call.rows, width, call.threads, [=](int64_t slab, int64_t first, int64_t rows) {
    column_sums(dy + first * width, rows, width, partial + slab * width);
  });
  combine_slabs(partial, slab_count(call.rows, width), width, call.db, width, call.accumulate);
}

template <class T>
void fill_as(void* x, uint64_t pattern, int64_t count, int threads) {
  T* to = static_cast<T*>(x);
  const T value = static_cast<T>(pattern);
  for_blocks(count, threads, [to, value](int64_t first, int64_t n) {
#pragma omp simd
    for (int64_t i = first; i < first + n; ++i) to[i] = value;
  });
}

void fill(void* x, uint64_t pattern, int element_bytes, int64_t count, int threads) {
  if (element_bytes == 2) return fill_as<uint16_t>(x, pattern, count, threads);
  if (element_bytes == 4) return fill_as<uint32_t>(x, pattern, count, threads);
  fill_as<uint64_t>(x, pattern, count, threads);
}

}  // namespace

ElementKernels element_kernels() {
  return {.add = {add<float>, add<Bf16>, add<F16>},
          .dropout = {dropout<float>, dropout<Bf16>, dropout<F16>},
          .bias_grad = {bias_grad<float>, bias_grad<Bf16>, bias_grad<F16>},
          .bias_grad_workspace = bias_grad_workspace,
          .fill = fill};
}

}  // namespace rankine::RANKINE_ISA

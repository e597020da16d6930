#pragma once
#include <cstdint>

// How kernels divide work: fixed blocks of elements and fixed slabs of rows, chosen from the sizes
// alone, so that no result depends on the number of threads.
namespace rankine::RANKINE_ISA {

constexpr int64_t block_elements = 4096;
// Work on fewer elements than these stays on one thread: a region of several takes about as long.
constexpr int64_t few_elements = 32768;

static inline int64_t blocks_of(int64_t count, int64_t block) {
  return (count + block - 1) / block;
}
static inline int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// One function wherever it is called from, which gives the same bits alone and beside others.
template <class Body>
[[gnu::noinline]] static void call_once(const Body& body, int64_t i) {
  body(i);
}

// body(i) for each i below `count`, in parallel. A region of a single thread would cost as much as
// small work itself, about two microseconds.
template <class Body>
static inline void for_each(int64_t count, int threads, const Body& body) {
  if (threads <= 1 || count <= 1) {
    for (int64_t i = 0; i < count; ++i) call_once(body, i);
    return;
  }
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t i = 0; i < count; ++i) call_once(body, i);
}

// The threads that so many elements are worth.
static inline int threads_for(int64_t elements, int threads) {
  return elements > few_elements ? threads : 1;
}

// body(first, count) for each block of block_elements, in parallel.
template <class Body>
static inline void for_blocks(int64_t count, int threads, const Body& body) {
  for_each(blocks_of(count, block_elements), threads_for(count, threads),
           [&body, count](int64_t b) {
             const int64_t first = b * block_elements;
             body(first, smaller(block_elements, count - first));
           });
}

// body(row) for each row, in parallel.
template <class Body>
static inline void for_rows(int64_t rows, int64_t width, int threads, const Body& body) {
  for_each(rows, threads_for(rows * width, threads), body);
}

// The number of row slabs of a column sum: enough for many threads, bounded partial sums.
static inline int64_t slab_count(int64_t rows, int64_t width) {
  const int64_t by_rows = blocks_of(rows, 64), by_width = (int64_t{1} << 18) / (width + 1);
  const int64_t slabs = smaller(64, smaller(by_rows, by_width));
  return slabs < 1 ? 1 : slabs;
}

// body(slab, first_row, row_count) for each slab, in parallel.
template <class Body>
static inline void for_slabs(int64_t rows, int64_t width, int threads, const Body& body) {
  const int64_t slabs = slab_count(rows, width);
  for_each(slabs, threads, [&body, rows, slabs](int64_t s) {
    const int64_t first = rows * s / slabs;
    body(s, first, rows * (s + 1) / slabs - first);
  });
}

// to[c] (+)= the sum over slabs, in order, of partial[slab * stride + c].
static inline void combine_slabs(const float* partial, int64_t slabs, int64_t stride, float* to,
                                 int64_t width, bool accumulate) {
  if (!accumulate) {
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) to[c] = 0;
  }
  for (int64_t s = 0; s < slabs; ++s) {
    const float* from = partial + s * stride;
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) to[c] += from[c];
  }
}

// The sum over [0, count) of term(i) in 32 interleaved partial sums: the same order on every
// instruction set, in independent chains of additions.
template <class Term>
[[gnu::always_inline]] static inline float lane_sum(int64_t count, const Term& term) {
  constexpr int64_t lanes = 32;
  float sums[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
#pragma omp simd
    for (int64_t l = 0; l < lanes; ++l) sums[l] += term(i + l);
  }
  for (int64_t l = 0; i + l < count; ++l) sums[l] += term(i + l);
  for (int64_t half = lanes / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; ++l) sums[l] += sums[l + half];
  return sums[0];
}

}  // namespace rankine::RANKINE_ISA

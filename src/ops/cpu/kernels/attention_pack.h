#pragma once
#include "ops/cpu/kernels/attention_tile.h"

// Copies rows of q, k, v or their gradients into the layouts that the small products read. Heads
// are padded with zeros to whole vectors, rows to whole tiles.
namespace rankine::RANKINE_ISA {

// Rows [first, end) of one head of a matrix; rows from `limit` on are taken as zeros.
template <class S>
struct HeadRows {
  const S* data;  // row 0
  ptrdiff_t stride;
  int64_t first, end, limit;
  int64_t width;   // D
  int64_t padded;  // D rounded up to whole vectors
};

[[gnu::always_inline]] static inline int64_t round_up(int64_t x, int64_t unit) {
  return (x + unit - 1) / unit * unit;
}
[[gnu::always_inline]] static inline int64_t smaller_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}
[[gnu::always_inline]] static inline int64_t larger_of(int64_t a, int64_t b) {
  return a > b ? a : b;
}

// Rows of one head lie on pages of their own, where no hardware prefetcher follows: whoever walks
// over rows asks for the row `prefetch_distance` further down. Addresses past the end do no harm.
constexpr int64_t prefetch_distance = 12;
template <bool for_writing, class S>
[[gnu::always_inline]] static inline void prefetch_row(const S* row, int64_t width) {
  const char* line = reinterpret_cast<const char*>(row);
  const char* end = reinterpret_cast<const char*>(row + width);
  for (; line < end; line += 64) __builtin_prefetch(line, for_writing ? 1 : 0, 3);
}

// The word that holds x[d], for pairs x[d] and x[d + 1].
template <class S>
[[gnu::always_inline]] static inline void word_along(float& to, const S* x, int64_t d, int64_t) {
  to = up(x[d]);
}
[[gnu::always_inline]] static inline void word_along(uint32_t& to, const Bf16* x, int64_t d,
                                                     int64_t width) {
  to = x[d].bits | (d + 1 < width ? static_cast<uint32_t>(x[d + 1].bits) << 16 : 0u);
}

// Left operand, contracted over D: to[row - first][padded / depth].
template <class Path, class S>
static void pack_rows(const HeadRows<S>& rows, typename Path::Word* to) {
  const int64_t words = rows.padded / Path::depth;
  for (int64_t t = rows.first; t < rows.end; ++t, to += words) {
    const int64_t width = t < rows.limit ? rows.width : 0;
    const int64_t filled = (width + Path::depth - 1) / Path::depth;
    const S* x = rows.data + t * rows.stride;
    prefetch_row<false>(x + prefetch_distance * rows.stride, rows.width);
    for (int64_t w = 0; w < filled; ++w) word_along(to[w], x, w * Path::depth, width);
    for (int64_t w = filled; w < words; ++w) to[w] = 0;
  }
}

// The `lanes` words that hold x[0] and what follows it.
template <class S>
[[gnu::always_inline]] static inline void words_along(float* to, const S* x) {
#pragma omp simd
  for (int i = 0; i < lanes; ++i) to[i] = up(x[i]);
}
[[gnu::always_inline]] static inline void words_along(uint32_t* to, const Bf16* x) {
  __builtin_memcpy(to, x, vector_bytes);
}

// Right operand, contracted over D, a column per row: to[t / panel][padded / depth][panel].
// `first` and `end` are multiples of the panel. Whole squares are transposed in registers.
template <class Path, class S>
static void pack_columns(const HeadRows<S>& rows, typename Path::Word* to) {
  using Word = typename Path::Word;
  const int64_t words = rows.padded / Path::depth;
  const int64_t filled = (rows.width + Path::depth - 1) / Path::depth;
  const int64_t squares = rows.width / Path::depth / lanes * lanes;
  for (int64_t start = rows.first; start < rows.end; start += lanes) {
    Word* block = to + start / panel * panel * words + start % panel;
    const S* x = rows.data + start * rows.stride;
    const bool whole = start + lanes <= rows.limit;
    for (int64_t i = 0; i < lanes; ++i)
      prefetch_row<false>(x + (i + prefetch_distance) * rows.stride, rows.width);
    for (int64_t w = 0; whole && w < squares; w += lanes) {
      Word square[lanes][lanes];
      for (int i = 0; i < lanes; ++i) words_along(square[i], x + i * rows.stride + w * Path::depth);
      transpose_square(square[0], block + w * panel, panel);
    }
    for (int64_t i = 0; i < lanes; ++i) {
      const int64_t used = start + i < rows.limit ? filled : 0;
      for (int64_t w = whole ? squares : 0; w < used; ++w)
        word_along(block[w * panel + i], x + i * rows.stride, w * Path::depth, rows.width);
      for (int64_t w = used; w < words; ++w) block[w * panel + i] = 0;
    }
  }
}

// One row's part of a right operand contracted over rows: `count` numbers from column d on.
template <class S>
[[gnu::always_inline]] static inline void fill_panel(float* to, const S* x, const S*,
                                                     int64_t count) {
#pragma omp simd
  for (int64_t d = 0; d < count; ++d) to[d] = up(x[d]);
}
[[gnu::always_inline]] static inline void fill_panel(uint32_t* to, const Bf16* x, const Bf16* next,
                                                     int64_t count) {
  if (next == nullptr) {
    for (int64_t d = 0; d < count; ++d) to[d] = x[d].bits;
    return;
  }
#pragma omp simd
  for (int64_t d = 0; d < count; ++d) to[d] = x[d].bits | static_cast<uint32_t>(next[d].bits) << 16;
}

// Right operand, contracted over rows: to[padded / panel][(row - origin) / depth][panel], with
// `capacity` rows between panels of D. first - origin, end - origin are multiples of the depth.
template <class Path, class S>
static void pack_depth(const HeadRows<S>& rows, int64_t origin, int64_t capacity,
                       typename Path::Word* to) {
  const int64_t words = capacity / Path::depth;
  for (int64_t t = rows.first; t < rows.end; t += Path::depth) {
    typename Path::Word* line = to + (t - origin) / Path::depth * panel;
    const S* x = rows.data + t * rows.stride;
    prefetch_row<false>(x + prefetch_distance * rows.stride, rows.width);
    for (int64_t d = 0; d < rows.padded; d += panel, line += words * panel) {
      const int64_t used =
          t < rows.limit ? larger_of(0, smaller_of(panel, rows.width - d)) : int64_t{0};
      const S* next = t + 1 < rows.limit ? x + rows.stride + d : nullptr;
      if (used == panel)
        fill_panel(line, x + d, next, panel);
      else if (used > 0)
        fill_panel(line, x + d, next, used);
      for (int64_t i = used; i < panel; ++i) line[i] = 0;
    }
  }
}

}  // namespace rankine::RANKINE_ISA

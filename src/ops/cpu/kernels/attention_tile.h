#pragma once
#include "ops/cpu/kernels/vectors.h"

// Small matrix products inside attention: C = A B for a few rows, B packed in panels as wide as the
// register tile. A path says what a word of A and B is: one f32, or a pair of bf16.
namespace rankine::RANKINE_ISA {

constexpr int panel = lanes * register_vectors;

struct FloatPath {
  using Word = float;
  static constexpr int depth = 1;  // numbers along the contraction in one word
  [[gnu::always_inline]] static inline Floats add_product(Floats sums, float a, Floats b) {
    return sums + a * b;
  }
};

struct PairPath {
  using Word = uint32_t;
  static constexpr int depth = 2;
  [[gnu::always_inline]] static inline Floats add_product(Floats sums, uint32_t a, Words b) {
    return dot_pairs(sums, a, b);
  }
};

template <class S>
struct ChoosePath {
  using Path = FloatPath;
};
template <bool pairs>
struct ChooseBf16Path {
  using Path = FloatPath;
};
template <>
struct ChooseBf16Path<true> {
  using Path = PairPath;
};
template <>
struct ChoosePath<Bf16> {
  using Path = ChooseBf16Path<has_pairs>::Path;
};
template <class S>
using PathOf = typename ChoosePath<S>::Path;

template <class Word>
struct Tile {
  const Word* a;
  ptrdiff_t a_row, a_step;  // distance of rows, and of words along the contraction
  const Word* b;            // [words][panel]
  int words;
  float* c;
  ptrdiff_t c_row;
  bool accumulate;
};

template <class Path, int rows, int vectors>
[[gnu::always_inline]] static inline void multiply(const Tile<typename Path::Word>& tile) {
  Floats sums[rows][vectors];
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j)
      sums[i][j] = tile.accumulate ? load(tile.c + i * tile.c_row + j * lanes) : Floats{};
  const auto* a = tile.a;
  const auto* b = tile.b;
  for (int k = 0; k < tile.words; ++k, a += tile.a_step, b += panel) {
    decltype(load(b)) columns[vectors];
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) columns[j] = load(b + j * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i)
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j)
        sums[i][j] = Path::add_product(sums[i][j], a[i * tile.a_row], columns[j]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) store(tile.c + i * tile.c_row + j * lanes, sums[i][j]);
}

template <class Path, int vectors>
[[gnu::noinline]] static void multiply_rows(const Tile<typename Path::Word>& tile, int rows) {
  static_assert(register_rows == 6, "one case per number of rows");
  switch (rows) {
    case 6:
      return multiply<Path, 6, vectors>(tile);
    case 5:
      return multiply<Path, 5, vectors>(tile);
    case 4:
      return multiply<Path, 4, vectors>(tile);
    case 3:
      return multiply<Path, 3, vectors>(tile);
    case 2:
      return multiply<Path, 2, vectors>(tile);
    default:
      return multiply<Path, 1, vectors>(tile);
  }
}

// One group of 1..register_rows rows times one panel of which `columns` (at least one vector)
// count.
template <class Path>
[[gnu::always_inline]] static inline void multiply_group(const Tile<typename Path::Word>& tile,
                                                         int rows, int64_t columns) {
  if (columns >= panel) return multiply_rows<Path, register_vectors>(tile, rows);
  if constexpr (register_vectors > 2) {
    if (columns > 2 * lanes) return multiply_rows<Path, 3>(tile, rows);
    if (columns > lanes) return multiply_rows<Path, 2>(tile, rows);
  }
  multiply_rows<Path, 1>(tile, rows);
}

}  // namespace rankine::RANKINE_ISA

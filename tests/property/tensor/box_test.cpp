#include "tensor/box.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace rankine {
namespace {

Shape random_shape(std::mt19937& rng) {
  std::vector<int64_t> dims(1 + rng() % 4);
  for (int64_t& extent : dims) extent = 1 + static_cast<int64_t>(rng() % 9);
  return Shape(dims);
}

TEST(Box, PiecesTileTheTensorAlongAnyDim) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 rng(seed);
    const Shape shape = random_shape(rng);
    const int dim = static_cast<int>(rng() % static_cast<unsigned>(shape.rank()));
    const int64_t parts = 1 + rng() % 12;
    int64_t sum = 0;
    for (int64_t i = 0; i < parts; ++i) {
      sum += volume(piece(shape, dim, i, parts));
      for (int64_t j = 0; j < i; ++j)
        EXPECT_EQ(volume(intersect(piece(shape, dim, i, parts), piece(shape, dim, j, parts))), 0)
            << "seed " << seed;
    }
    EXPECT_EQ(sum, shape.elements()) << "seed " << seed;
  }
}

TEST(Box, SharedRunsMoveEveryElementExactlyOnce) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 rng(seed);
    const Shape shape = random_shape(rng);
    const auto rank = static_cast<unsigned>(shape.rank());
    const int from_dim = static_cast<int>(rng() % rank), to_dim = static_cast<int>(rng() % rank);
    const int64_t from = 1 + rng() % 5, to = 1 + rng() % 5;
    for (int64_t t = 0; t < to; ++t) {
      const Box wanted = piece(shape, to_dim, t, to);
      std::vector<int> filled(static_cast<size_t>(volume(wanted)), 0);
      for (int64_t f = 0; f < from; ++f) {
        const Box held = piece(shape, from_dim, f, from);
        for_each_shared_run(held, wanted, [&](int64_t source, int64_t target, int64_t count) {
          ASSERT_LE(source + count, volume(held)) << "seed " << seed;
          for (int64_t i = 0; i < count; ++i) ++filled.at(static_cast<size_t>(target + i));
        });
      }
      for (const int times : filled) ASSERT_EQ(times, 1) << "seed " << seed;
    }
  }
}

TEST(Box, RunsKeepGlobalPositions) {
  const Box a{Shape{1, 2, 0}, Shape{4, 5, 6}}, b{Shape{2, 0, 3}, Shape{6, 4, 9}};
  int64_t runs = 0;
  for_each_shared_run(a, b, [&](int64_t in_a, int64_t in_b, int64_t count) {
    EXPECT_EQ(count, 3);
    const int64_t i = in_a / 18 + 1, j = in_a / 6 % 3 + 2, k = in_a % 6;
    EXPECT_EQ(in_b, ((i - 2) * 4 + j) * 6 + (k - 3));
    ++runs;
  });
  EXPECT_EQ(runs, 4);
}

}  // namespace
}  // namespace rankine

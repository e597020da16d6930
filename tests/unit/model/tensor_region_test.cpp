#include "model/tensor_region.h"

#include <gtest/gtest.h>

#include <vector>

#include "comm/thread_world.h"

namespace rankine {
namespace {

constexpr int64_t rows = 4, width = 3;

Tensor matrix(std::vector<float>& values) {
  return Tensor{values.data(), DType::f32, Shape{rows, width}};
}

TEST(TensorRegion, IsNothingOnOneRank) {
  std::vector<float> values(rows * width, 2);
  const TensorRegion region;
  const Tensor all = matrix(values);
  EXPECT_EQ(region.own(all).data, all.data);
  region.enter(all);
  region.leave(all).wait();
  EXPECT_EQ(values, std::vector<float>(rows * width, 2));
}

// Megatron-LM's f and g: what leaves is summed, what enters is there already.
TEST(TensorRegion, WithoutSequenceParallelismLeavingSumsAllRows) {
  run_ranks_as_threads(2, {.mesh = {{1, 1, 2}}}, [](World& world) {
    const int rank = world.rank();
    const auto ranks = world.group({0, 1});
    const TensorSplit split{.rank = rank, .ranks = 2};
    const TensorRegion region(split, ranks.get());
    std::vector<float> values(rows * width, static_cast<float>(rank + 1));
    const Tensor all = matrix(values);
    EXPECT_EQ(region.own(all).shape[0], rows);
    region.enter(all);
    EXPECT_EQ(values, std::vector<float>(rows * width, static_cast<float>(rank + 1)));
    region.leave(all).wait();
    EXPECT_EQ(values, std::vector<float>(rows * width, 3));
  });
}

TEST(TensorRegion, WithSequenceParallelismEveryRankHasItsRowsOutside) {
  run_ranks_as_threads(2, {.mesh = {{1, 1, 2}}}, [](World& world) {
    const int rank = world.rank();
    const auto ranks = world.group({0, 1});
    const TensorSplit split{.rank = rank, .ranks = 2, .sequence = true};
    const TensorRegion region(split, ranks.get());
    std::vector<float> values(rows * width, 0);
    const Tensor all = matrix(values);
    const Tensor own = region.own(all);
    ASSERT_EQ(own.shape[0], rows / 2);
    auto* mine = static_cast<float*>(own.data);
    for (int64_t i = 0; i < own.elements(); ++i) mine[i] = static_cast<float>(rank + 1);
    region.enter(all);
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(values[i], i < values.size() / 2 ? 1 : 2) << "entering gathers all rows";
    region.leave(all).wait();
    for (int64_t i = 0; i < own.elements(); ++i)
      EXPECT_EQ(mine[i], 2.0F * static_cast<float>(rank + 1)) << "leaving sums own rows";
  });
}

}  // namespace
}  // namespace rankine

#include "unit/ops/pointwise_support.h"

namespace rankine::test {
namespace {

TEST(Sums, AgreeWithF64AndAccumulate) {
  for (const std::string& set : pointwise_sets()) {
    const std::unique_ptr<Ops> ops = make_cpu_ops(2, set);
    for (const int64_t count : {1, 15, 17, 65536, 65537, 200003}) {
      SCOPED_TRACE(fmt::format("{}, {} elements", set, count));
      const Workspace space(*ops, ops->sum_workspace(count));
      const Owned x = random_tensor(DType::f32, {count}, 1), total(DType::f64, {1});
      double sum = 0, squares = 0;
      for (const double v : x.values()) {
        sum += v;
        squares += v * v;
      }
      const double bound = 1e-13 * static_cast<double>(count);
      ops->sum(x, total, false);
      EXPECT_NEAR(total.values()[0], sum, bound);
      ops->sum_squares(x, total, true);
      EXPECT_NEAR(total.values()[0], sum + squares, bound);
      ops->sum_squares(x, total, false);
      EXPECT_NEAR(total.values()[0], squares, bound);
      ops->sum(x, total, true);
      EXPECT_NEAR(total.values()[0], sum + squares, bound);
    }
  }
}

// Whole blocks of 65,536 summed apart, then in order: a range cut at blocks gives the same bits.
TEST(Sums, BlocksInOrderOnAnyThreads) {
  same_for_any_threads([](Ops& ops, DType) {
    constexpr int64_t block = 65536, count = 3 * block + 77;
    const Workspace space(ops, ops.sum_workspace(count));
    const Owned x = random_tensor(DType::f32, {count}, 1);
    const Owned total(DType::f64, {1}), parts(DType::f64, {1});
    ops.sum_squares(x, total, false);
    for (int64_t first = 0; first < count; first += block)
      ops.sum_squares(x.tensor().range(first, std::min(block, count - first)), parts, first > 0);
    EXPECT_TRUE(total.bits() == parts.bits());
    return total.bits();
  });
}

}  // namespace
}  // namespace rankine::test

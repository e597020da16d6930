#include <cmath>
#include <limits>

#include "unit/ops/pointwise_support.h"

namespace rankine::test {
namespace {

double squares_of(Ops& ops, const Tensor& x, std::vector<int64_t> pieces = {}) {
  ExactSum total;
  const Tensor exact{total.parts().data(), DType::i64, Shape{ExactSum::size}};
  int64_t first = 0;
  pieces.push_back(x.elements());
  for (const int64_t end : pieces) {
    ops.sum_squares(x.range(first, end - first), exact);
    first = end;
  }
  return total.value();
}

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
      ops->sum(x, total, true);
      EXPECT_NEAR(total.values()[0], 2 * sum, bound);
      EXPECT_NEAR(squares_of(*ops, x), squares, bound);
    }
  }
}

// Whole blocks of 65,536 summed apart, then in order.
TEST(Sums, DoNotDependOnThreads) {
  same_for_any_threads([](Ops& ops, DType) {
    constexpr int64_t count = 3 * 65536 + 77;
    const Workspace space(ops, ops.sum_workspace(count));
    const Owned x = random_tensor(DType::f32, {count}, 1);
    const Owned total(DType::f64, {1});
    ops.sum(x, total, false);
    return total.bits();
  });
}

TEST(Sums, SquaresAreTheSameHoweverTheyAreCut) {
  std::vector<double> seen;
  for (const std::string& set : pointwise_sets())
    for (const int threads : {1, 2, 3}) {
      const std::unique_ptr<Ops> ops = make_cpu_ops(threads, set);
      const Owned x = random_tensor(DType::f32, {200003}, 1);
      for (const std::vector<int64_t>& pieces :
           {std::vector<int64_t>{}, {64}, {128, 6400, 6464, 131072, 199936}})
        seen.push_back(squares_of(*ops, x, pieces));
    }
  for (const double value : seen) EXPECT_EQ(value, seen[0]);
}

TEST(Sums, ASquareThatIsNotFiniteShows) {
  const std::unique_ptr<Ops> ops = make_cpu_ops(2);
  std::vector<float> x(1000, 1.0f);
  const Tensor tensor{x.data(), DType::f32, Shape{1000}};
  EXPECT_EQ(squares_of(*ops, tensor), 1000);
  x[777] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(squares_of(*ops, tensor)));
}

}  // namespace
}  // namespace rankine::test

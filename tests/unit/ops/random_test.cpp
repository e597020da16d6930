#include "unit/ops/pointwise_support.h"

namespace rankine::test {
namespace {

constexpr RandomKey key{0x12345678, 0x9abcdef0};

double reference_normal(uint64_t index, double deviation) {
  const auto words = philox(key, index / 4);
  const size_t pair = index % 4 / 2 * 2;
  const double radius = std::sqrt(-2 * std::log((words[pair] + 1.0) * 0x1p-32));
  const double angle = 2 * M_PI * words[pair + 1] * 0x1p-32;
  return deviation * radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

TEST(FillNormal, FollowsPhiloxAndBoxMuller) {
  for (const std::string& set : pointwise_sets()) {
    const std::unique_ptr<Ops> ops = make_cpu_ops(2, set);
    for (const int64_t count : {1, 5, 255, 256, 257, 10000})
      for (const uint64_t first : {uint64_t{0}, uint64_t{3}, (uint64_t{1} << 34) + 2}) {
        SCOPED_TRACE(fmt::format("{}, {} from {}", set, count, first));
        const Owned x(DType::f32, {count});
        ops->fill_normal(x, key, first, 0.02f);
        const Values got = x.values();
        for (size_t i = 0; i < got.size(); ++i)
          ASSERT_NEAR(got[i], reference_normal(first + i, 0.02f), 1.3e-7 * std::abs(got[i]) + 1e-14)
              << "element " << i;
        ASSERT_TRUE(x.guard_intact());
      }
  }
}

TEST(FillNormal, SameBitsOnEveryInstructionSetAndMachine) {
  for (const std::string& set : pointwise_sets())
    for (const int threads : {1, 2, 3}) {
      const Owned x(DType::f32, {1 << 16});
      make_cpu_ops(threads, set)->fill_normal(x, key, 1, 1);
      EXPECT_EQ(hash_text(x.bits()), 4826745210638830486u) << set << ", " << threads << " threads";
    }
}

TEST(FillNormal, HasTheMomentsOfANormalDistribution) {
  constexpr int64_t count = 1 << 18;
  const Owned x(DType::f32, {count});
  make_cpu_ops(2)->fill_normal(x, key, 0, 2);
  double moments[4] = {};
  for (const double v : x.values())
    for (int m = 0; m < 4; ++m) moments[m] += std::pow(v / 2, m + 1) / count;
  const double unit = 6 / std::sqrt(static_cast<double>(count));  // six standard deviations
  EXPECT_NEAR(moments[0], 0, unit);
  EXPECT_NEAR(moments[1], 1, unit * std::sqrt(2));
  EXPECT_NEAR(moments[2], 0, unit * std::sqrt(15));
  EXPECT_NEAR(moments[3], 3, unit * std::sqrt(96));
}

}  // namespace
}  // namespace rankine::test

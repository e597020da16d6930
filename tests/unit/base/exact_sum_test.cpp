#include "base/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace rankine {
namespace {

TEST(ExactSum, OneNumberComesBack) {
  for (const double x : {0.0, 1.0, -1.0, 0.1, 1e300, -1e-300, 5e-324, 1.5, 3.0e-310,
                         std::numeric_limits<double>::max(), std::numeric_limits<double>::min()}) {
    ExactSum sum;
    sum.add(x);
    EXPECT_EQ(sum.value(), x);
  }
}

TEST(ExactSum, NothingIsLost) {
  ExactSum sum;
  for (const double x : {1e300, 1.0, -1e300, 1e-300}) sum.add(x);
  EXPECT_EQ(sum.value(), 1.0);
  sum.add(-1.0);
  EXPECT_EQ(sum.value(), 1e-300);
  // Ties go to even, and a bit far below decides against a tie.
  ExactSum tie;
  tie.add(1.0);
  tie.add(0x1p-53);
  EXPECT_EQ(tie.value(), 1.0);
  tie.add(0x1p-1000);
  EXPECT_EQ(tie.value(), 1.0 + 0x1p-52);
}

TEST(ExactSum, OrderAndPartsDoNotMatter) {
  for (unsigned seed = 1; seed < 20; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::vector<double> x(1000);
    for (double& v : x) v = std::ldexp(normal(random), static_cast<int>(random() % 200) - 100);
    ExactSum forward, left, right;
    for (const double v : x) forward.add(v);
    std::shuffle(x.begin(), x.end(), random);
    for (size_t i = 0; i < x.size(); ++i) (i % 3 == 0 ? left : right).add(x[i]);
    left.add(right);
    EXPECT_EQ(left.value(), forward.value()) << "seed " << seed;
    long double reference = 0;
    std::sort(x.begin(), x.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
    for (const double v : x) reference += v;
    EXPECT_NEAR(forward.value() / static_cast<double>(reference), 1, 1e-12) << "seed " << seed;
    EXPECT_EQ(ExactSum(forward.parts()).value(), forward.value());
  }
}

TEST(ExactSum, WhatIsNotFiniteShows) {
  ExactSum sum;
  sum.add(std::numeric_limits<double>::infinity());
  sum.add(1);
  EXPECT_TRUE(std::isnan(sum.value()));
}

}  // namespace
}  // namespace rankine

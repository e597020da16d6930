#include "runtime/sampler.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>

namespace rankine {
namespace {

constexpr std::array logits{1.0f, 3.0f, 2.0f, 3.0f, -5.0f};

std::map<int32_t, int> draws(const SamplerOptions& options, int count) {
  Sampler sampler(options);
  std::map<int32_t, int> seen;
  for (int i = 0; i < count; ++i) ++seen[sampler.choose(logits, static_cast<uint64_t>(i))];
  return seen;
}

TEST(Sampler, TemperatureZeroTakesTheFirstOfTheLikeliest) {
  EXPECT_EQ(draws({.temperature = 0}, 10), (std::map<int32_t, int>{{1, 10}}));
}

TEST(Sampler, DrawsFollowTheSoftmax) {
  const int count = 20000;
  const auto seen = draws({.temperature = 1, .top_p = 1, .seed = 5}, count);
  double total = 0;
  for (const float x : logits) total += std::exp(static_cast<double>(x));
  for (size_t i = 0; i < logits.size(); ++i) {
    const double p = std::exp(static_cast<double>(logits[i])) / total;
    const auto found = seen.find(static_cast<int32_t>(i));
    const double share = found == seen.end() ? 0 : static_cast<double>(found->second) / count;
    EXPECT_NEAR(share, p, 4 * std::sqrt(p * (1 - p) / count) + 1e-4) << "token " << i;
  }
}

TEST(Sampler, TopKAndTopPKeepTheLikeliest) {
  for (const auto& [token, times] : draws({.temperature = 2, .top_p = 1, .top_k = 2}, 300))
    EXPECT_TRUE(token == 1 || token == 3) << token;
  // The two likeliest have 0.84 of the probability.
  const auto narrow = draws({.temperature = 1, .top_p = 0.5}, 300);
  EXPECT_EQ(narrow.size(), 2u);
  EXPECT_TRUE(draws({.temperature = 1, .top_p = 0.9}, 300).contains(2));
}

TEST(Sampler, IsAFunctionOfSeedAndPosition) {
  EXPECT_EQ(draws({.temperature = 1, .seed = 9}, 100), draws({.temperature = 1, .seed = 9}, 100));
  Sampler sampler({.temperature = 1, .top_p = 1, .seed = 1});
  const int32_t first = sampler.choose(logits, 77);
  sampler.choose(logits, 3);
  EXPECT_EQ(sampler.choose(logits, 77), first);
}

}  // namespace
}  // namespace rankine

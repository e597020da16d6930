#include "runtime/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

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

// What top-p keeps of a large vocabulary, against sorting all of it.
TEST(Sampler, TopPOfManyTokensIsThatOfTheSortedOnes) {
  constexpr size_t count = 3000;
  std::vector<float> many(count);
  for (size_t i = 0; i < count; ++i)
    many[i] = 0.002f * static_cast<float>((i * 1237) % count) * (i % 3 == 0 ? 1.0f : 0.5f);
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(
      order, [&](size_t a, size_t b) { return many[a] != many[b] ? many[a] > many[b] : a < b; });
  double total = 0;
  for (const float x : many) total += std::exp(static_cast<double>(x));
  for (const double top_p : {0.05, 0.5, 0.9}) {
    std::set<int32_t> kept;
    double sum = 0;
    for (size_t i = 0; sum < top_p * total; ++i) {
      sum += std::exp(static_cast<double>(many[order[i]]));
      kept.insert(static_cast<int32_t>(order[i]));
    }
    Sampler sampler({.temperature = 1, .top_p = top_p, .seed = 4});
    std::set<int32_t> drawn;
    for (uint64_t i = 0; i < 3000; ++i) drawn.insert(sampler.choose(many, i));
    for (const int32_t id : drawn) EXPECT_TRUE(kept.contains(id)) << top_p << " " << id;
    EXPECT_GT(drawn.size(), kept.size() / 4) << top_p;
  }
}

TEST(Sampler, SamplesOfOnePromptDiffer) {
  Sampler sampler({.temperature = 1, .top_p = 1, .seed = 1});
  std::set<int32_t> drawn;
  for (uint64_t sample = 0; sample < 50; ++sample) drawn.insert(sampler.choose(logits, 7, sample));
  EXPECT_GT(drawn.size(), 1u);
  EXPECT_EQ(sampler.choose(logits, 7), sampler.choose(logits, 7, 0));
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

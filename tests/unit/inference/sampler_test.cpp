#include "inference/sampler.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace rankine {
namespace {

TEST(Sampler, PlacesAreAFunctionOfSeedPositionAndSample) {
  std::set<double> seen;
  for (uint64_t seed = 0; seed < 3; ++seed)
    for (uint64_t position = 0; position < 40; ++position)
      for (uint64_t sample = 0; sample < 5; ++sample) {
        const double place = sampling_place({.seed = seed}, position, sample);
        EXPECT_TRUE(0 <= place && place < 1) << place;
        EXPECT_EQ(sampling_place({.temperature = 2, .top_k = 3, .seed = seed}, position, sample),
                  place);
        seen.insert(place);
      }
  EXPECT_EQ(seen.size(), 600u);
}

TEST(Sampler, PlacesAreSpreadEvenly) {
  constexpr int count = 20000, parts = 10;
  std::array<int, parts> found{};
  for (uint64_t i = 0; i < count; ++i)
    ++found[static_cast<size_t>(sampling_place({.seed = 5}, i) * parts)];
  for (const int n : found) EXPECT_NEAR(n, count / parts, 200);  // over 4 deviations
}

TEST(Sampler, OptionsReachTheChoice) {
  const std::array forbidden{3, 4};
  const TokenChoice choice =
      token_choice({.temperature = 0.7, .top_p = 0.6, .top_k = 9}, 100, forbidden);
  EXPECT_EQ(choice.vocabulary, 100);
  EXPECT_EQ(choice.temperature, 0.7);
  EXPECT_EQ(choice.top_p, 0.6);
  EXPECT_EQ(choice.top_k, 9);
  EXPECT_EQ(choice.forbidden.data(), forbidden.data());
}

}  // namespace
}  // namespace rankine

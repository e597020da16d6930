#include "data/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace rankine {
namespace {

std::vector<uint64_t> permutation(uint64_t n, uint64_t seed, uint64_t stream) {
  std::vector<uint64_t> out(n);
  for (uint64_t i = 0; i < n; ++i) out[i] = permuted(i, n, random_key(seed, "test"), stream);
  return out;
}

TEST(Permuted, IsABijectionForSmallLengths) {
  for (uint64_t n = 1; n <= 2000; n += n < 300 ? 1 : 7) {
    std::vector<bool> seen(n, false);
    for (const uint64_t image : permutation(n, n, 3)) {
      ASSERT_LT(image, n) << "n " << n;
      ASSERT_FALSE(seen[image]) << "n " << n << " image " << image;
      seen[image] = true;
    }
  }
}

TEST(Permuted, IsABijectionAtALargeLength) {
  const uint64_t n = (1 << 16) + 7;
  std::vector<uint64_t> images = permutation(n, 1, 0);
  std::sort(images.begin(), images.end());
  for (uint64_t i = 0; i < n; ++i) ASSERT_EQ(images[i], i);
}

TEST(Permuted, StaysInjectiveAndBelowHugeLengths) {
  for (const uint64_t n : {uint64_t{1} << 33, (uint64_t{1} << 40) + 1, uint64_t{3} << 61}) {
    std::set<uint64_t> images;
    for (uint64_t i = 0; i < 20000; ++i) {
      const uint64_t index = philox({7, 7}, i)[0] * (n >> 32) + i;
      const uint64_t image = permuted(index % n, n, random_key(4, "test"), 1);
      ASSERT_LT(image, n);
      images.insert(image);
    }
    EXPECT_GT(images.size(), 19990U) << "n " << n;
  }
}

TEST(Permuted, DependsOnSeedAndStream) {
  const auto a = permutation(1000, 1, 0);
  EXPECT_EQ(a, permutation(1000, 1, 0));
  EXPECT_NE(a, permutation(1000, 2, 0));
  EXPECT_NE(a, permutation(1000, 1, 1));
}

// Chi-square over (position tenth, image tenth): 81 degrees of freedom, mean 81, deviation 12.7.
TEST(Permuted, MixesAllOverTheRange) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const uint64_t n = 10000;
    std::vector<double> table(100, 0);
    const auto images = permutation(n, seed, seed);
    for (uint64_t i = 0; i < n; ++i) table[i / 1000 * 10 + images[i] / 1000] += 1;
    double chi_square = 0;
    for (const double count : table) chi_square += (count - 100) * (count - 100) / 100;
    EXPECT_LT(chi_square, 81 + 6 * 12.7) << "seed " << seed;
  }
}

TEST(SampleOrder, EveryEpochSeesEveryTrainingWindowOnceInAnotherOrder) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const uint64_t windows = 2 + philox({1, 1}, seed)[0] % 300;
    const SampleOrder order(
        {.windows = windows, .validation_fraction = seed % 3 == 0 ? 0 : 0.1, .seed = seed});
    ASSERT_EQ(order.training_windows() + order.validation_windows(), windows) << "seed " << seed;
    EXPECT_EQ(order.validation_windows() > 0, seed % 3 != 0) << "seed " << seed;
    std::vector<std::vector<uint64_t>> epochs(3);
    for (uint64_t i = 0; i < 3 * order.training_windows(); ++i)
      epochs[i / order.training_windows()].push_back(order.training_window(i));
    if (order.training_windows() > 10) {
      EXPECT_NE(epochs[0], epochs[1]) << "seed " << seed;
      EXPECT_NE(epochs[1], epochs[2]) << "seed " << seed;
    }
    for (auto& epoch : epochs) {
      std::sort(epoch.begin(), epoch.end());
      for (uint64_t i = 0; i < epoch.size(); ++i) ASSERT_EQ(epoch[i], i) << "seed " << seed;
    }
    for (uint64_t i = 0; i < order.validation_windows(); ++i)
      EXPECT_GE(order.validation_window(i), order.training_windows());
  }
}

TEST(BatchShape, LayoutsTileTheGlobalBatch) {
  for (const int64_t degree : {1, 2, 3, 4, 6, 12})
    for (const int64_t micro_batch : {1, 2, 3, 4, 6, 12}) {
      if (24 % (degree * micro_batch) != 0) continue;
      std::vector<uint64_t> samples;
      for (int64_t micro = 0; micro < 24 / (degree * micro_batch); ++micro)
        for (int64_t rank = 0; rank < degree; ++rank)
          for (int64_t row = 0; row < micro_batch; ++row)
            samples.push_back(BatchShape{24, micro_batch, rank, degree}.sample(5, micro, row));
      ASSERT_EQ(samples.size(), 24U);
      for (size_t i = 0; i < 24; ++i) EXPECT_EQ(samples[i], 5 * 24 + i);
    }
}

}  // namespace
}  // namespace rankine

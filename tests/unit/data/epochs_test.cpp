#include <gtest/gtest.h>

#include <map>

#include "data/loader.h"
#include "support/temporary_folder.h"
#include "support/token_files.h"

// Batches that the number of sequences does not divide: over the ends of epochs every sequence is
// trained on as often as every other, and no batch is short.
namespace rankine {
namespace {

constexpr uint64_t length = 8;

std::vector<Corpus> corpus_of(const test::TemporaryFolder& folder, uint64_t windows) {
  std::vector<uint32_t> ids(windows * length + 1);
  for (uint32_t i = 0; i < ids.size(); ++i) ids[i] = i;
  std::vector<Corpus> out;
  out.emplace_back(TokenData::open({{folder.write("c.bin", test::raw_tokens<uint32_t>(ids)),
                                     DataFormat::raw_u32}}),
                   length);
  return out;
}

struct Batches {
  int64_t windows, micro, accumulation, ranks;
};

class EpochsTest : public ::testing::TestWithParam<Batches> {};

TEST_P(EpochsTest, EverySequenceOnceInEachEpoch) {
  const auto [windows, micro, accumulation, ranks] = GetParam();
  const test::TemporaryFolder folder;
  const std::vector<Corpus> data = corpus_of(folder, static_cast<uint64_t>(windows));
  const int64_t batch = micro * accumulation * ranks;
  const SampleMix mix(SampleOrder({.windows = static_cast<uint64_t>(windows),
                                   .least_training = static_cast<uint64_t>(batch),
                                   .seed = 3}));
  // `windows` steps are `batch` whole epochs.
  std::vector<int32_t> order;
  std::vector<int32_t> inputs(static_cast<size_t>(micro) * length), targets(inputs.size());
  for (int64_t step = 0; step < windows; ++step)
    for (int64_t m = 0; m < accumulation; ++m)
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const Loader loader(
            data, mix,
            {.global_batch = batch, .micro_batch = micro, .data_rank = rank, .data_degree = ranks});
        ASSERT_EQ(loader.micros(), accumulation);
        loader.fill(step, m, {inputs.data(), targets.data()});
        for (size_t row = 0; row < static_cast<size_t>(micro); ++row) {
          for (size_t i = row * length; i < (row + 1) * length; ++i) {
            ASSERT_EQ(targets[i], inputs[i] + 1) << "no batch is short";
            ASSERT_EQ(inputs[i] % static_cast<int32_t>(length), static_cast<int32_t>(i % length));
          }
          order.push_back(inputs[row * length] / static_cast<int32_t>(length));
        }
      }
  ASSERT_EQ(order.size(), static_cast<size_t>(windows * batch));
  for (int64_t epoch = 0; epoch < batch; ++epoch) {
    const auto begin = order.begin() + epoch * windows;
    std::vector<int32_t> seen(begin, begin + windows);
    std::ranges::sort(seen);
    for (int32_t w = 0; w < windows; ++w)
      ASSERT_EQ(seen[static_cast<size_t>(w)], w) << "epoch " << epoch;
  }
  if (windows > 4 && batch > 1) {
    EXPECT_FALSE(std::equal(order.begin(), order.begin() + windows, order.begin() + windows))
        << "another order in the next epoch";
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, EpochsTest,
                         ::testing::Values(Batches{7, 1, 1, 1}, Batches{7, 1, 4, 1},
                                           Batches{7, 4, 1, 1}, Batches{7, 2, 2, 1},
                                           Batches{7, 3, 2, 1}, Batches{7, 1, 2, 3},
                                           Batches{13, 5, 1, 2}, Batches{3, 1, 3, 1},
                                           Batches{1, 1, 1, 1}));

}  // namespace
}  // namespace rankine

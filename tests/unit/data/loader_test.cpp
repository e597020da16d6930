#include "data/loader.h"

#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/temporary_folder.h"
#include "support/token_files.h"

namespace rankine {
namespace {

using test::error_of;
using Buffer = std::vector<int32_t>;

// Token i of the corpus is i, so that contents tell places.
TokenData counting_data(const test::TemporaryFolder& folder, uint32_t tokens) {
  std::vector<uint32_t> ids(tokens);
  for (uint32_t i = 0; i < tokens; ++i) ids[i] = i;
  return TokenData::open({.data = {folder.write("c.bin", test::raw_tokens<uint32_t>(ids))},
                          .format = DataFormat::raw_u32});
}

TEST(Loader, TargetsAreTheNextTokens) {
  const test::TemporaryFolder folder;
  const TokenData data = counting_data(folder, 101);
  const SampleOrder order({.tokens = 101, .seq_length = 10, .global_batch = 4, .seed = 5});
  const Loader loader(data, order, {.global_batch = 4, .micro_batch = 2});
  ASSERT_EQ(loader.micros(), 2);
  Buffer inputs(20), targets(20);
  for (int64_t step = 0; step < 6; ++step)
    for (int64_t micro = 0; micro < 2; ++micro) {
      loader.fill(step, micro, inputs.data(), targets.data());
      for (size_t i = 0; i < 20; ++i) {
        EXPECT_EQ(inputs[i] % 10, static_cast<int32_t>(i % 10));
        EXPECT_EQ(targets[i], inputs[i] + 1);
      }
    }
  EXPECT_EQ(loader.epoch(2), 0);
  EXPECT_EQ(loader.epoch(3), 1);
}

TEST(Loader, EveryLayoutHasTheSameGlobalBatch) {
  const test::TemporaryFolder folder;
  const TokenData data = counting_data(folder, 4 * 50 + 1);
  const SampleOrder order({.tokens = data.count(), .seq_length = 4, .global_batch = 12, .seed = 9});
  const auto global_batch = [&](int64_t degree, int64_t micro_batch) {
    Buffer all;
    Buffer inputs(static_cast<size_t>(micro_batch * 4)), targets(inputs.size());
    for (int64_t micro = 0; micro < 12 / (degree * micro_batch); ++micro)
      for (int64_t rank = 0; rank < degree; ++rank) {
        const Loader loader(data, order,
                            {.global_batch = 12,
                             .micro_batch = micro_batch,
                             .data_rank = rank,
                             .data_degree = degree});
        loader.fill(7, micro, inputs.data(), targets.data());
        all.insert(all.end(), inputs.begin(), inputs.end());
      }
    return all;
  };
  const Buffer expected = global_batch(1, 12);
  for (const auto& [degree, micro_batch] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {2, 3}, {3, 2}, {4, 3}, {12, 1}})
    EXPECT_EQ(global_batch(degree, micro_batch), expected) << degree << " x " << micro_batch;
}

TEST(Loader, ValidationWindowsAreTheLastAndPadded) {
  const test::TemporaryFolder folder;
  const TokenData data = counting_data(folder, 101);
  const SampleOrder order(
      {.tokens = 101, .seq_length = 10, .global_batch = 1, .validation_fraction = 0.3});
  ASSERT_EQ(order.validation_windows(), 3U);
  const Loader loader(data, order, {.global_batch = 2, .micro_batch = 2});
  Buffer inputs(20), targets(20);
  EXPECT_EQ(loader.fill_validation(0, inputs.data(), targets.data()), 2);
  EXPECT_EQ(inputs[0], 70);
  EXPECT_EQ(targets[19], 90);
  EXPECT_EQ(loader.fill_validation(2, inputs.data(), targets.data()), 1);
  EXPECT_EQ(inputs[0], 90);
  EXPECT_EQ(targets[9], 100);
  EXPECT_EQ(inputs[10], 0);
  EXPECT_EQ(targets[10], -1);
  EXPECT_EQ(targets[19], -1);
  EXPECT_EQ(loader.fill_validation(3, inputs.data(), targets.data()), 0);
}

TEST(SampleOrder, RefusesShortCorpora) {
  const Error one =
      error_of([] { SampleOrder({.tokens = 10, .seq_length = 10, .global_batch = 1}); });
  EXPECT_EQ(one.kind(), ErrorKind::data);
  EXPECT_NE(std::string(one.what()).find("10 tokens, less than one sequence of 10 + 1"),
            std::string::npos);
  EXPECT_NO_THROW(SampleOrder({.tokens = 11, .seq_length = 10, .global_batch = 1}));
  const Error batch = error_of([] {
    SampleOrder({.tokens = 41, .seq_length = 10, .global_batch = 4, .validation_fraction = 0.01});
  });
  EXPECT_EQ(batch.kind(), ErrorKind::data);
  EXPECT_NE(std::string(batch.what()).find("has 3 sequences of 10 tokens for training (1 for"),
            std::string::npos)
      << batch.what();
}

TEST(BatchShape, MustDivide) {
  EXPECT_NO_THROW(check(BatchShape{.global_batch = 12, .micro_batch = 2, .data_degree = 3}));
  EXPECT_EQ(test::message_of(
                [] { check(BatchShape{.global_batch = 13, .micro_batch = 2, .data_degree = 2}); }),
            "--global-batch-size 13: must be a multiple of micro-batch 2 x data degree 2 = 4; "
            "nearest legal value 12");
  EXPECT_EQ(error_of([] { check(BatchShape{.global_batch = 0}); }).kind(), ErrorKind::usage);
}

TEST(DataOptions, ReadByTheirNames) {
  DataOptions options;
  OptionTable table;
  declare_options(table, options);
  parse_options(table,
                {"--data", "a", "b", "--data-format", "raw-u16", "--validation-fraction", "0"});
  EXPECT_EQ(options.data, (std::vector<std::filesystem::path>{"a", "b"}));
  EXPECT_EQ(options.format, DataFormat::raw_u16);
  EXPECT_EQ(options.validation_fraction, 0);
}

}  // namespace
}  // namespace rankine

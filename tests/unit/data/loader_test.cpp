#include "data/loader.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support/errors.h"
#include "support/temporary_folder.h"
#include "support/token_files.h"

namespace rankine {
namespace {

using test::error_of;
using Buffer = std::vector<int32_t>;

// Token i of the corpus is i, so that contents tell places.
std::vector<Corpus> counting_corpus(const test::TemporaryFolder& folder, uint32_t tokens,
                                    uint64_t seq_length) {
  std::vector<uint32_t> ids(tokens);
  for (uint32_t i = 0; i < tokens; ++i) ids[i] = i;
  std::vector<Corpus> out;
  out.emplace_back(TokenData::open({{folder.write("c.bin", test::raw_tokens<uint32_t>(ids)),
                                     DataFormat::raw_u32}}),
                   seq_length);
  return out;
}

SampleMix order_of(const SampleOrderRequest& request) {
  return SampleMix(SampleOrder(request));
}

TEST(Loader, TargetsAreTheNextTokens) {
  const test::TemporaryFolder folder;
  const std::vector<Corpus> data = counting_corpus(folder, 101, 10);
  const SampleMix order = order_of({.windows = 10, .least_training = 4, .seed = 5});
  const Loader loader(data, order, {.global_batch = 4, .micro_batch = 2});
  ASSERT_EQ(loader.micros(), 2);
  Buffer inputs(20), targets(20);
  for (int64_t step = 0; step < 6; ++step)
    for (int64_t micro = 0; micro < 2; ++micro) {
      loader.fill(step, micro, {inputs.data(), targets.data()});
      for (size_t i = 0; i < 20; ++i) {
        EXPECT_EQ(inputs[i] % 10, static_cast<int32_t>(i % 10));
        EXPECT_EQ(targets[i], inputs[i] + 1);
      }
    }
}

TEST(Loader, EveryLayoutHasTheSameGlobalBatch) {
  const test::TemporaryFolder folder;
  const std::vector<Corpus> data = counting_corpus(folder, 4 * 50 + 1, 4);
  const SampleMix order = order_of({.windows = 50, .least_training = 12, .seed = 9});
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
        loader.fill(7, micro, {inputs.data(), targets.data()});
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
  const std::vector<Corpus> data = counting_corpus(folder, 101, 10);
  const SampleMix order = order_of({.windows = 10, .validation_fraction = 0.3});
  ASSERT_EQ(order.validation_windows(), 3U);
  const Loader loader(data, order, {.global_batch = 2, .micro_batch = 2});
  Buffer inputs(20), targets(20);
  EXPECT_EQ(loader.fill_validation(0, {inputs.data(), targets.data()}), 2);
  EXPECT_EQ(inputs[0], 70);
  EXPECT_EQ(targets[19], 90);
  EXPECT_EQ(loader.fill_validation(2, {inputs.data(), targets.data()}), 1);
  EXPECT_EQ(inputs[0], 90);
  EXPECT_EQ(targets[9], 100);
  EXPECT_EQ(inputs[10], 0);
  EXPECT_EQ(targets[10], -1);
  EXPECT_EQ(targets[19], -1);
  EXPECT_EQ(loader.fill_validation(3, {inputs.data(), targets.data()}), 0);
}

TEST(Loader, FirstKeysAreWhereDocumentsBegin) {
  const test::TemporaryFolder folder;
  const auto path =
      folder.write("c.bin", test::raw_tokens<uint32_t>({1, 2, 9, 9, 3, 4, 5, 9, 6, 7, 8}));
  std::vector<Corpus> data;
  data.emplace_back(TokenData::open({{path, DataFormat::raw_u32}}), 5, 9);
  const SampleMix order = order_of({.windows = 2});
  const Loader loader(data, order, {.global_batch = 2, .micro_batch = 2}, true);
  EXPECT_TRUE(loader.masks_documents());
  Buffer inputs(10), targets(10), first_keys(10);
  loader.fill(0, 0, {inputs.data(), targets.data(), first_keys.data()});
  const size_t first = inputs[0] == 1 ? 0 : 5;
  const auto row = [&](size_t begin) {
    return Buffer(first_keys.begin() + static_cast<std::ptrdiff_t>(begin),
                  first_keys.begin() + static_cast<std::ptrdiff_t>(begin) + 5);
  };
  EXPECT_EQ(row(first), (Buffer{0, 0, 0, 3, 4}));      // 1 2 9 | 9 | 3
  EXPECT_EQ(row(5 - first), (Buffer{0, 0, 0, 3, 3}));  // 4 5 9 | 6 7
  std::vector<Corpus> unknown;
  unknown.emplace_back(TokenData::open({{path, DataFormat::raw_u32}}), 5);
  EXPECT_EQ(
      error_of([&] { Loader(unknown, order, {.global_batch = 2, .micro_batch = 2}, true); }).kind(),
      ErrorKind::usage);
}

TEST(SampleOrder, RefusesShortCorpora) {
  const test::TemporaryFolder folder;
  const Error one = error_of([&] { counting_corpus(folder, 10, 10); });
  EXPECT_EQ(one.kind(), ErrorKind::data);
  EXPECT_NE(std::string(one.what()).find("10 tokens, less than one sequence of 10 + 1"),
            std::string::npos);
  EXPECT_NO_THROW(counting_corpus(folder, 11, 10));
  const Error batch = error_of([] {
    SampleOrder({.windows = 4, .least_training = 4, .validation_fraction = 0.01, .name = "a.txt"});
  });
  EXPECT_EQ(batch.kind(), ErrorKind::data);
  EXPECT_NE(std::string(batch.what())
                .find("'a.txt' has 3 sequences for training (1 for validation), less "
                      "than its 4 of one global batch"),
            std::string::npos)
      << batch.what();
}

TEST(SampleMix, CorporaHaveTheirSharesAndAllTheirWindows) {
  const SampleMix mix(
      {SampleOrder({.windows = 40, .validation_fraction = 0.1, .seed = 3}),
       SampleOrder({.windows = 10, .validation_fraction = 0.1, .seed = 3, .corpus = 1})},
      {0.7, 0.3});
  std::map<uint32_t, std::map<uint64_t, int>> seen;
  for (uint64_t i = 0; i < 100; ++i) {
    const Sample sample = mix.training(i);
    ++seen[sample.corpus][sample.window];
  }
  int first = 0;
  for (const auto& [window, times] : seen[0]) first += times;
  EXPECT_EQ(first, 70);
  EXPECT_EQ(seen[0].size(), 36U);  // 70 samples of 36 windows
  for (const auto& [window, times] : seen[0]) EXPECT_LE(times, 2) << window;
  EXPECT_EQ(seen[1].size(), 9U);
  for (const auto& [window, times] : seen[1]) EXPECT_GE(times, 3) << window;
  // Any ten samples in a row keep to the shares but for one.
  for (uint64_t begin = 0; begin < 50; ++begin) {
    int of_first = 0;
    for (uint64_t i = 0; i < 10; ++i) of_first += mix.training(begin + i).corpus == 0 ? 1 : 0;
    EXPECT_NEAR(of_first, 7, 1) << begin;
  }
  std::map<uint32_t, std::set<uint64_t>> validated;
  for (uint64_t i = 0; i < mix.validation_windows(); ++i)
    validated[mix.validation(i).corpus].insert(mix.validation(i).window);
  EXPECT_EQ(validated[0], (std::set<uint64_t>{36, 37, 38, 39}));
  EXPECT_EQ(validated[1], (std::set<uint64_t>{9}));
}

TEST(SampleMix, WeightsAreChecked) {
  EXPECT_EQ(parse_weights("0.7,0.3", 2), (std::vector<double>{0.7, 0.3}));
  for (const char* text : {"", "1", "1,2,3", "1,-1", "1,0", "1,x", "1,,2", "1,inf", "1,nan"})
    EXPECT_EQ(error_of([&] { parse_weights(text, 2); }).kind(), ErrorKind::usage) << text;
  const SampleOrder order({.windows = 4});
  EXPECT_EQ(error_of([&] { SampleMix({order, order}, {1, 0.00001}); }).kind(), ErrorKind::usage);
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
  EXPECT_EQ(options.text.data, (std::vector<std::filesystem::path>{"a", "b"}));
  EXPECT_EQ(options.text.format, DataFormat::raw_u16);
  EXPECT_EQ(options.validation_fraction, 0);
}

}  // namespace
}  // namespace rankine

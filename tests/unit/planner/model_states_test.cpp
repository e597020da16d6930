#include "planner/model_states.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/published.h"

// Model states per rank against table 1 and figure 1 of the ZeRO paper (arXiv 1910.02054).
namespace rankine {
namespace {

// `value` to the nearest 1/scale, halves upwards, without trailing zeros.
std::string rounded(double value, double scale) {
  return fmt::format("{:.12g}", std::floor(value * scale + 0.5) / scale);
}

// How table 1 prints, GB = 10^9 bytes: from 100 GB on whole GB, the rest cut off (513.5 is 513);
// below that rounded to three digits, two decimals at most, without trailing zeros (41.25 is 41.3,
// 1.875 is 1.88, 0.117 is 0.12).
std::string as_in_table_1(uint64_t bytes) {
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  if (gigabytes >= 100) return fmt::format("{}", bytes / 1'000'000'000);
  return rounded(gigabytes, gigabytes >= 10 ? 10 : 100);
}

TEST(ModelStates, EveryCellOfThePublishedTable) {
  // Columns: model, parameters, optimizer bytes of a parameter, data degree, stage, name, GB.
  const auto rows = test::published_rows("zero_sc20_table1_model_state_memory.csv");
  if (rows.empty()) GTEST_SKIP() << "no table in " << test::published_folder();
  int cells = 0;
  for (const test::Cells& row : rows) {
    ASSERT_GE(row.size(), 7u);
    const StateWidths widths{.optimizer = std::stoull(row[2])};
    const ModelStates states = model_states(std::stoll(row[1]), std::stoll(row[3]),
                                            zero_stage(std::stoll(row[4])), widths);
    EXPECT_EQ(as_in_table_1(states.total()), row[6])
        << row[0] << ", " << row[3] << " ranks, stage " << row[4];
    ++cells;
  }
  EXPECT_EQ(cells, 54);
}

TEST(ModelStates, CellsOfThePublishedTableByHand) {
  struct Cell {
    int64_t parameters, ranks;
    const char* stages[3];  // 1, 2 and 3
  };
  constexpr int64_t billion = 1'000'000'000;
  for (const Cell& cell : {Cell{7'500'000'000, 4, {"52.5", "41.3", "30"}},
                           Cell{7'500'000'000, 64, {"31.4", "16.6", "1.88"}},
                           Cell{7'500'000'000, 1024, {"30.1", "15.1", "0.12"}},
                           Cell{128 * billion, 16, {"608", "368", "128"}},
                           Cell{128 * billion, 1024, {"513", "257", "2"}},
                           Cell{1000 * billion, 64, {"4187", "2218", "250"}},
                           Cell{1000 * billion, 1024, {"4011", "2013", "15.6"}}}) {
    const auto table = zero_table(cell.parameters, cell.ranks);
    for (size_t stage = 1; stage <= 3; ++stage)
      EXPECT_EQ(as_in_table_1(table[stage].total()), cell.stages[stage - 1])
          << cell.parameters << " parameters, " << cell.ranks << " ranks, stage " << stage;
  }
}

TEST(ModelStates, TheExampleOfThePaperToOneDecimal) {
  const char* printed[] = {"120", "31.4", "16.6", "1.9"};
  const auto table = zero_table(7'500'000'000, 64);
  for (size_t stage = 0; stage < 4; ++stage)
    EXPECT_EQ(rounded(static_cast<double>(table[stage].total()) / 1e9, 10), printed[stage]);
  EXPECT_EQ(optimizer_share({}), 0.75);
}

TEST(ModelStates, EachStageShardsOneMore) {
  const auto table = zero_table(1000, 8);
  const ModelStates expected[] = {
      {2000, 2000, 12000}, {2000, 2000, 1500}, {2000, 250, 1500}, {250, 250, 1500}};
  for (size_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(table[stage].parameter_bytes, expected[stage].parameter_bytes) << stage;
    EXPECT_EQ(table[stage].gradient_bytes, expected[stage].gradient_bytes) << stage;
    EXPECT_EQ(table[stage].optimizer_bytes, expected[stage].optimizer_bytes) << stage;
  }
}

TEST(ModelStates, OneRankHoldsEverythingAtEveryStage) {
  for (const ModelStates& states : zero_table(12345, 1)) EXPECT_EQ(states.total(), 16u * 12345);
}

TEST(ModelStates, ShardsAreWholeElements) {
  EXPECT_EQ(model_states(10, 4, zero_stage(3)).total(), 3u * 16);
  EXPECT_EQ(model_states(3, 4, zero_stage(3)).total(), 1u * 16);
}

TEST(ModelStates, WidthsOfEachPrecision) {
  const auto bytes = [](DType dtype) {
    const ModelStates states = model_states(1, 1, zero_stage(0), state_widths(dtype));
    return std::vector{states.parameter_bytes, states.gradient_bytes, states.optimizer_bytes};
  };
  EXPECT_EQ(bytes(DType::f32), (std::vector<uint64_t>{4, 4, 8}));
  EXPECT_EQ(bytes(DType::bf16), (std::vector<uint64_t>{2, 4, 12}));
  EXPECT_EQ(bytes(DType::f16), bytes(DType::bf16));
  EXPECT_EQ(optimizer_share(state_widths(DType::f32)), 0.5);
}

TEST(ModelStates, NumbersOutOfRangeAreRefused) {
  EXPECT_THROW(model_states(0, 1, {}), Error);
  EXPECT_THROW(model_states(100'000'000'000'000'001, 1, {}), Error);
  EXPECT_THROW(model_states(1, 0, {}), Error);
  EXPECT_NO_THROW(model_states(100'000'000'000'000'000, 1, {}));
  EXPECT_THROW(state_widths(DType::i32), Error);
}

}  // namespace
}  // namespace rankine

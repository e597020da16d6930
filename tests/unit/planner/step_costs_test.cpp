#include "planner/step_costs.h"

#include <gtest/gtest.h>

namespace rankine {
namespace {

// Two layers of 100 parameters each and 10 flops forward, a tied head of 20 flops.
std::vector<BlockDescription> blocks() {
  std::vector<BlockDescription> out(4);
  out[1].matmul_flops = out[2].matmul_flops = 8;
  out[1].attention_flops = out[2].attention_flops = 2;
  out[1].output = out[2].output = {"output", DType::f32, Shape{10}};
  out[1].saved = out[2].saved = {{"input", DType::f32, Shape{5}}};
  out[3].matmul_flops = 20;
  return out;
}

const std::vector<BlockTraits> traits{{.parameter_elements = 400},
                                      {.parameter_elements = 100},
                                      {.parameter_elements = 100},
                                      {.parameter_elements = 8,
                                       .tied = 0,
                                       .forward_reads_parameters = false,
                                       .splits_backward = false}};

TEST(StepCosts, FollowFlopsAndBytes) {
  const CostTable whole = step_costs(
      {{blocks(), traits}},
      {.rates = {.flops = 10, .bytes_sent = 100}, .data_degree = 4, .compute = DType::bf16});
  const auto seconds = [](const CostTable& table, const char* word) {
    return table.seconds(0, parse_program(word)[0]);
  };
  EXPECT_DOUBLE_EQ(seconds(whole, "0F0.1"), 1);
  EXPECT_DOUBLE_EQ(seconds(whole, "0B0.1"), 2);
  EXPECT_DOUBLE_EQ(seconds(whole, "0I0.1"), 1);
  EXPECT_DOUBLE_EQ(seconds(whole, "0W0.1"), 1);
  EXPECT_DOUBLE_EQ(seconds(whole, "0F0.3"), 0) << "the head does everything in its backward";
  EXPECT_DOUBLE_EQ(seconds(whole, "0B0.3"), 6);
  EXPECT_DOUBLE_EQ(seconds(whole, "0SEND_F0"), 0.4) << "40 bytes";
  EXPECT_DOUBLE_EQ(seconds(whole, "0REDUCE0.1"), 100 * 4 * 2 * 0.75 / 100);
  EXPECT_DOUBLE_EQ(seconds(whole, "0U"), 0);
  const CostTable cut =
      step_costs({{blocks(), traits}},
                 {.rates = {.flops = 10, .bytes_sent = 100, .memory_bytes = 28, .tier_bytes = 50},
                  .data_degree = 4,
                  .compute = DType::bf16,
                  .zero = zero_stage(3)});
  EXPECT_DOUBLE_EQ(seconds(cut, "0LOAD.2"), 100 * 2 * 0.25 / 50) << "a shard";
  EXPECT_DOUBLE_EQ(seconds(cut, "0STORE0.1"), 20 / 50.0);
  EXPECT_DOUBLE_EQ(seconds(cut, "0FETCH0.1"), 20 / 50.0);
  EXPECT_DOUBLE_EQ(seconds(whole, "0FETCH0.1"), 0);
  EXPECT_DOUBLE_EQ(seconds(cut, "0REDUCE0.1"), 100 * 4 * 0.75 / 100);
  EXPECT_DOUBLE_EQ(seconds(cut, "0GATHER.2"), 100 * 2 * 0.75 / 100);
  EXPECT_DOUBLE_EQ(seconds(cut, "0U"), 608 / 4.0);
  EXPECT_EQ(whole.memory_change(0, parse_program("0F0.1")[0]), 20);
  EXPECT_EQ(whole.memory_change(0, parse_program("0B0.1")[0]), -20);
  EXPECT_EQ(whole.memory_change(0, parse_program("0I0.1")[0]), 0);
  EXPECT_EQ(whole.memory_change(0, parse_program("0STORE0.1")[0]), -20);
  EXPECT_EQ(whole.memory_change(0, parse_program("0FETCH0.1")[0]), 20);
  EXPECT_EQ(whole.memory_change(0, parse_program("0W0.1")[0]), -20);
  const CostTable split = step_costs(
      {{blocks(), traits}}, {.rates = {.flops = 10, .bytes_sent = 100}, .tensor_degree = 2});
  EXPECT_DOUBLE_EQ(seconds(split, "0F0.1"), 1 + 2 * 40 / 100.0) << "two sums of 40 bytes";
}

TEST(BalancedLayers, CountTheHead) {
  std::vector<BlockDescription> model(14);
  for (size_t b = 1; b < 13; ++b) model[b].matmul_flops = 10;
  model[13].matmul_flops = 40;
  EXPECT_EQ(balanced_layers(model, 1), (std::vector<int64_t>{12}));
  EXPECT_EQ(balanced_layers(model, 2), (std::vector<int64_t>{8, 4}));
  EXPECT_EQ(balanced_layers(model, 4), (std::vector<int64_t>{4, 4, 4, 0}));
  model[13].matmul_flops = 0;
  EXPECT_EQ(balanced_layers(model, 5), (std::vector<int64_t>{3, 3, 2, 2, 2}));
  EXPECT_EQ(balanced_layers(std::span(model).last(3), 2), (std::vector<int64_t>{1, 0}));
}

// A step on two ranks, by hand: the reductions of the layers hide behind what comes after them.
TEST(StepCosts, TheSimulatorHidesReductionsBehindTheBackward) {
  const Program program = add_reduces(
      expand_blocks(accumulation_program(1), {{.stage = 0, .first = 0, .count = 4}}, traits),
      traits, {});
  const RankBlocks rank{blocks(), traits};
  const CostTable costs =
      step_costs({rank, rank}, {.rates = {.flops = 10, .bytes_sent = 400}, .data_degree = 2});
  std::vector<RankProgram> ranks;
  for (int r = 0; r < 2; ++r) ranks.push_back({{.data = r}, program, traits, {}});
  const Simulation simulation = simulate(ranks, costs);
  // F 1 + 1, B 6 + 2 + 2, then the embedding's reduction of 400 elements, 4 s, hides behind nothing
  // and waits for the last layer's of 1 s.
  EXPECT_DOUBLE_EQ(simulation.seconds, 12 + 1 + 4);
  EXPECT_EQ(simulation.ranks[0].peak_bytes, 40);
}

}  // namespace
}  // namespace rankine

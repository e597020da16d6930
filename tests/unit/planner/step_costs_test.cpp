#include "planner/step_costs.h"

#include <gtest/gtest.h>

namespace rankine {
namespace {

// Two layers of 100 parameters each and 10 flops forward, a tied head of 20 flops.
std::vector<BlockDescription> blocks() {
  std::vector<BlockDescription> out(4);
  out[1].matmul_flops = out[2].matmul_flops = 8;
  out[1].attention_flops = out[2].attention_flops = 2;
  out[1].saved = out[2].saved = {{"input", DType::f32, Shape{5}}};
  out[3].matmul_flops = 20;
  return out;
}

const std::vector<BlockTraits> traits{{.parameter_elements = 400},
                                      {.parameter_elements = 100},
                                      {.parameter_elements = 100},
                                      {.parameter_elements = 8, .tied = 0}};

TEST(StepCosts, FollowFlopsAndBytes) {
  const CostTable whole =
      step_costs(blocks(), traits, {.flops = 10, .bytes_sent = 100}, 4, DType::bf16, zero_stage(0));
  const auto seconds = [](const CostTable& table, const char* word) {
    return table.seconds(0, parse_program(word)[0]);
  };
  EXPECT_DOUBLE_EQ(seconds(whole, "0F0.1"), 1);
  EXPECT_DOUBLE_EQ(seconds(whole, "0B0.1"), 2);
  EXPECT_DOUBLE_EQ(seconds(whole, "0F0.3"), 6) << "the head makes its gradients in forward";
  EXPECT_DOUBLE_EQ(seconds(whole, "0B0.3"), 0);
  EXPECT_DOUBLE_EQ(seconds(whole, "0REDUCE0.1"), 100 * 4 * 2 * 0.75 / 100);
  EXPECT_DOUBLE_EQ(seconds(whole, "0U"), 0);
  const CostTable cut =
      step_costs(blocks(), traits, {.flops = 10, .bytes_sent = 100, .memory_bytes = 28}, 4,
                 DType::bf16, zero_stage(3));
  EXPECT_DOUBLE_EQ(seconds(cut, "0REDUCE0.1"), 100 * 4 * 0.75 / 100);
  EXPECT_DOUBLE_EQ(seconds(cut, "0GATHER.2"), 100 * 2 * 0.75 / 100);
  EXPECT_DOUBLE_EQ(seconds(cut, "0U"), 608 / 4.0);
  EXPECT_EQ(whole.memory_change(0, parse_program("0F0.1")[0]), 20);
  EXPECT_EQ(whole.memory_change(0, parse_program("0B0.1")[0]), -20);
}

// A step on two ranks, by hand: the reductions of the layers hide behind what comes after them.
TEST(StepCosts, TheSimulatorHidesReductionsBehindTheBackward) {
  const Program program = add_reduces(expand_blocks(accumulation_program(1), 4), traits, {});
  const CostTable costs =
      step_costs(blocks(), traits, {.flops = 10, .bytes_sent = 400}, 2, DType::f32, zero_stage(0));
  std::vector<RankProgram> ranks;
  for (int r = 0; r < 2; ++r) ranks.push_back({{.data = r}, program, traits, {}});
  const Simulation simulation = simulate(ranks, costs);
  // F 1 + 1 + 6, B 2 + 2, then the embedding's reduction of 400 elements, 4 s, hides behind nothing
  // and waits for the last layer's of 1 s.
  EXPECT_DOUBLE_EQ(simulation.seconds, 12 + 1 + 4);
  EXPECT_EQ(simulation.ranks[0].peak_bytes, 40);
}

}  // namespace
}  // namespace rankine

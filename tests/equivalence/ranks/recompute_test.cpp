#include <gtest/gtest.h>

#include "support/parallel_training.h"

// What is recomputed is what was: the same bits of losses, norms and every parameter.
namespace rankine::test {
namespace {

class Recomputing : public ::testing::TestWithParam<TinyModel> {};

Workload workload(const ModelConfig& config, DType compute) {
  return {.config = config,
          .shape = {2, 10},
          .micros = 4,
          .compute = compute,
          .optimizer = {.epsilon = 1e-3, .clip_grad = 0.5}};
}

TEST_P(Recomputing, ChangesNoBit) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    const Workload work = workload(GetParam().config, compute);
    for (Layout layout :
         {Layout{}, Layout{.data = 2, .zero = 3}, Layout{.pipeline = 2},
          Layout{.data = 2, .zero = 2, .pipeline = 2, .schedule = ScheduleKind::zero_bubble}}) {
      SCOPED_TRACE(to_string(layout));
      const Outcome kept = train_as_threads(work, layout);
      for (const auto& [mode, layers] :
           {std::pair{Recompute::selective, -1}, {Recompute::full, -1}, {Recompute::full, 1}}) {
        layout.recompute = mode;
        layout.recompute_layers = layers;
        SCOPED_TRACE(fmt::format("{}, {}, mode {}, {} layers", dtype_name(compute),
                                 to_string(layout), static_cast<int>(mode), layers));
        const Outcome again = train_as_threads(work, layout);
        EXPECT_EQ(again.losses, kept.losses);
        EXPECT_EQ(again.norms, kept.norms);
        EXPECT_EQ(again.weights, kept.weights);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Recomputing, ::testing::ValuesIn(tiny_models()),
                         [](const auto& tested) { return tested.param.name; });

TEST(RecomputingSplitLayers, ChangesNoBit) {
  ModelConfig config = tiny_models()[2].config;
  config.qk_norm = true;
  const Workload work = workload(config, DType::f32);
  for (const bool sequence : {false, true}) {
    Layout layout{.tensor = 2, .sequence = sequence};
    const Outcome kept = train_as_threads(work, layout);
    for (const Recompute mode : {Recompute::selective, Recompute::full}) {
      layout.recompute = mode;
      EXPECT_EQ(train_as_threads(work, layout).weights, kept.weights);
    }
  }
}

// Activations are what is left: with everything recomputed, inputs and one layer's tensors.
TEST(RecomputingMemory, KeepsInputsAndOneLayer) {
  ModelConfig config = tiny_models()[2].config;
  config.layers = 12;
  const auto ops = make_test_ops(1);
  const auto bytes = [&](Recompute mode, int64_t layers) {
    StepSetup step;
    step.recompute = mode;
    step.recompute_layers = layers;
    return Engine(*ops, config, {.shape = {2, 16}, .positions = 16}, step).step_plan().saved_bytes;
  };
  const int64_t all = bytes(Recompute::none, -1), none = bytes(Recompute::full, -1);
  const int64_t input = 2 * 16 * config.hidden * 4;
  const int64_t layer = (all - input) / 12;  // the head keeps its input
  EXPECT_EQ(none, 13 * input + (layer - input));
  EXPECT_LT(bytes(Recompute::full, 6), all);
  EXPECT_GT(bytes(Recompute::full, 6), none);
  const int64_t attended = 2 * 16 * config.query_width() * 4, lse = 2 * config.heads * 16 * 4;
  EXPECT_EQ(bytes(Recompute::selective, -1), all - 11 * (attended + lse));
}

}  // namespace
}  // namespace rankine::test

#include <gtest/gtest.h>

#include <algorithm>

#include "support/parallel_training.h"
#include "support/temporary_folder.h"

// Where parameters and saved activations lie changes no bit of losses, norms and parameters.
namespace rankine::test {
namespace {

class Tiers : public ::testing::TestWithParam<TinyModel> {};

Workload workload(const ModelConfig& config, DType compute, int micros) {
  return {.config = config,
          .shape = {2, 8},
          .micros = micros,
          .compute = compute,
          .steps = 2,
          .optimizer = {.epsilon = 1e-3, .clip_grad = 0.5},
          .validates = true};
}

void expect_same_bits(const Workload& work, const Layout& layout, const Outcome& kept) {
  SCOPED_TRACE(fmt::format("{}, {}", dtype_name(work.compute), to_string(layout)));
  const Outcome out = train_as_threads(work, layout);
  EXPECT_EQ(out.losses, kept.losses);
  EXPECT_EQ(out.norms, kept.norms);
  EXPECT_EQ(out.weights, kept.weights);
}

// Each thing alone in either tier; with an optimizer in either, whose own change is not the
// question here; all together in one tier, with recomputation.
void expect_no_change(const Workload& work, const Layout& layout) {
  const TemporaryFolder folder;
  using enum Offload;
  const OffloadSetup setups[] = {
      {.parameters = host},
      {.parameters = disk},
      {.activations = host},
      {.activations = disk},
      {.optimizer = host, .parameters = disk, .activations = host},
      {.optimizer = disk, .parameters = host, .activations = disk, .prefetch = 2},
      {.optimizer = host, .parameters = host, .activations = host, .prefetch = 3},
      {.optimizer = disk, .parameters = disk, .activations = disk}};
  Layout kept = layout;
  const Outcome all_kept = train_as_threads(work, kept);
  kept.offload.optimizer = host;
  const Outcome rest_kept = train_as_threads(work, kept);
  for (OffloadSetup setup : setups) {
    setup.folder = folder.path();
    Layout offloaded = layout;
    offloaded.offload = setup;
    if (setup.optimizer == setup.activations && setup.optimizer != none)
      offloaded.recompute = Recompute::full;
    expect_same_bits(work, offloaded, setup.optimizer == none ? all_kept : rest_kept);
  }
}

TEST_P(Tiers, ChangeNoBitOnOneRank) {
  for (const DType compute : {DType::f32, DType::bf16})
    expect_no_change(workload(GetParam().config, compute, 3), {});
}

TEST_P(Tiers, ChangeNoBitAtAnyStage) {
  for (const int zero : {0, 1, 2, 3})
    expect_no_change(workload(GetParam().config, zero % 2 == 0 ? DType::f32 : DType::bf16, 4),
                     {.data = 2, .zero = zero});
}

INSTANTIATE_TEST_SUITE_P(Models, Tiers, ::testing::ValuesIn(tiny_models()),
                         [](const auto& tested) { return tested.param.name; });

TEST(TiersOfPipelines, ChangeNoBit) {
  const ModelConfig config = tiny_models()[4].config;  // tied, with dropout
  for (const Layout& layout :
       {Layout{.pipeline = 2}, Layout{.pipeline = 2, .schedule = ScheduleKind::gpipe},
        Layout{.data = 2, .zero = 1, .pipeline = 2, .schedule = ScheduleKind::zero_bubble},
        Layout{.data = 2, .zero = 3, .pipeline = 2, .schedule = ScheduleKind::zb_v}})
    expect_no_change(workload(config, DType::bf16, 4 * layout.data), layout);
}

ModelConfig deep_model(int64_t layers) {
  ModelConfig config = tiny_models()[2].config;
  config.layers = layers;
  return config;
}

TEST(TiersOfSplitModels, ChangeNoBit) {
  for (const bool sequence : {false, true})
    expect_no_change(workload(tiny_models()[2].config, DType::f32, 2),
                     {.tensor = 2, .sequence = sequence});
  const Layout interleaved{
      .pipeline = 2, .schedule = ScheduleKind::interleaved, .virtual_stages = 3};
  expect_no_change(workload(deep_model(8), DType::f32, 4), interleaved);
}

MemoryPlan plan_of(const ModelConfig& config, const OffloadSetup& offload, DType compute) {
  const auto ops = make_test_ops(1);
  StepSetup step;
  step.offload = offload;
  return Engine(*ops, config, {.shape = {1, 8}, .compute = compute, .positions = 8}, step).plan();
}

uint64_t bytes_of(const MemoryPlan& plan, std::string_view name, Tier tier = Tier::device) {
  const auto found = std::ranges::find_if(plan.entries(), [&](const Allocation& entry) {
    return entry.name == name && entry.tier == tier;
  });
  return found == plan.entries().end() ? 0 : found->bytes;
}

// Of blocks of one size the device holds as many as are on their way or needed, however many there
// are.
TEST(TierMemoryPlan, TheDeviceHoldsAWindowOfBlocks) {
  for (const Offload tier : {Offload::host, Offload::disk}) {
    const OffloadSetup offload{.parameters = tier, .activations = tier, .folder = "/nowhere"};
    const MemoryPlan some = plan_of(deep_model(12), offload, DType::bf16),
                     more = plan_of(deep_model(48), offload, DType::bf16);
    const MemoryPlan kept = plan_of(deep_model(48), {}, DType::bf16);
    for (const char* name : {"gathered parameters", "activations"})
      EXPECT_EQ(bytes_of(some, name), bytes_of(more, name)) << name;
    EXPECT_EQ(bytes_of(more, "parameters"), 0u);
    EXPECT_LT(bytes_of(more, "activations") * 6, bytes_of(kept, "activations"));
    EXPECT_GT(bytes_of(more, "stored activations", tier_of(tier)),
              bytes_of(kept, "activations") / 2);
    EXPECT_GE(bytes_of(more, "parameters", tier_of(tier)), bytes_of(kept, "parameters"));
  }
}

// With its states an eighth of which is all the device memory there is, a model trains with the
// same bits.
TEST(TierMemoryPlan, AnEighthOfTheModelStatesIsEnough) {
  const TemporaryFolder folder;
  for (const DType compute : {DType::f32, DType::bf16})
    for (const Offload tier : {Offload::host, Offload::disk}) {
      ModelConfig config = deep_model(32);
      if (tier == Offload::disk) config.hidden = 96;  // shards are whole pages
      const OffloadSetup all{
          .optimizer = tier, .parameters = tier, .activations = tier, .folder = folder.path()};
      const MemoryPlan kept = plan_of(config, {}, compute);
      uint64_t states = 0;
      for (const PlanLine& line : summary(kept, Tier::device))
        for (const char* name : {"parameters", "master weights", "gradients", "optimizer states"})
          states += line.category == name ? line.bytes : 0;
      const MemoryLimits limits{.device = states / 8};
      EXPECT_FALSE(limits.hold(kept));
      EXPECT_TRUE(limits.hold(plan_of(config, all, compute)))
          << to_table(plan_of(config, all, compute), Tier::device) << states / 8;
      const Workload work{
          .config = config, .shape = {1, 8}, .micros = 1, .compute = compute, .steps = 2};
      expect_same_bits(work, {.offload = all}, train_as_threads(work, {}));
    }
}

}  // namespace
}  // namespace rankine::test

#include <gtest/gtest.h>

#include "support/parallel_training.h"
#include "support/temporary_folder.h"

// Where the optimizer's states lie changes no bit of losses, norms and parameters.
namespace rankine::test {
namespace {

class Offloading : public ::testing::TestWithParam<TinyModel> {};

Workload workload(const ModelConfig& config, DType compute, int micros) {
  return {.config = config,
          .shape = {1, 10},
          .micros = micros,
          .compute = compute,
          .optimizer = {.epsilon = 1e-3, .clip_grad = 0.5}};
}

void expect_same_bits(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.norms, b.norms);
  EXPECT_EQ(a.weights, b.weights);
}

void expect_no_change(const Workload& work, Layout layout) {
  const TemporaryFolder folder;
  const Outcome kept = train_as_threads(work, layout);
  for (const Offload offload : {Offload::host, Offload::disk}) {
    layout.offload = {.optimizer = offload, .folder = folder.path()};
    SCOPED_TRACE(fmt::format("{}, {}, {}", dtype_name(work.compute), to_string(layout),
                             offload == Offload::host ? "host" : "disk"));
    expect_same_bits(train_as_threads(work, layout), kept);
  }
}

// One micro-batch a step: gradients add up nowhere.
TEST_P(Offloading, ChangesNoBitOnAnyMesh) {
  for (const DType compute : {DType::f32, DType::bf16})
    for (const Layout& layout :
         {Layout{}, Layout{.data = 2}, Layout{.data = 2, .zero = 1}, Layout{.data = 2, .zero = 3}})
      expect_no_change(workload(GetParam().config, compute, layout.data), layout);
}

// With several, where gradients leave after each of them anyway.
TEST_P(Offloading, ChangesNoBitOfAccumulatedGradients) {
  for (const Layout& layout :
       {Layout{.data = 2, .zero = 2}, Layout{.data = 2, .zero = 3, .pipeline = 2},
        Layout{.strict = true}, Layout{.data = 2, .zero = 1, .strict = true, .pipeline = 2},
        Layout{.data = 2, .zero = 2, .pipeline = 2, .schedule = ScheduleKind::zb_v}})
    expect_no_change(workload(GetParam().config, DType::bf16, 4 * layout.data), layout);
}

// The tree of strict sums also where the number of micro-batches is no power of two.
TEST_P(Offloading, ChangesNoBitOfStrictSums) {
  for (const int micros : {2, 5, 7})
    expect_no_change(workload(GetParam().config, DType::f32, micros), {.strict = true});
}

// Without that they add up inside the products, in another order.
TEST_P(Offloading, KeepsToTheBoundWhereGradientsAddUpInProducts) {
  const TemporaryFolder folder;
  const Workload work = workload(GetParam().config, DType::f32, 4);
  const Outcome kept = train_as_threads(work, {});
  for (const Offload offload : {Offload::host, Offload::disk}) {
    Layout layout;
    layout.offload = {.optimizer = offload, .folder = folder.path()};
    expect_close(train_as_threads(work, layout), kept, 2e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Offloading, ::testing::ValuesIn(tiny_models()),
                         [](const auto& tested) { return tested.param.name; });

// 2 bytes an element of parameters and a few blocks' gradients, where 16 were.
TEST(OffloadedMemory, TheDeviceHoldsParametersAndPassingGradients) {
  ModelConfig config = tiny_models()[2].config;
  config.layers = 24;
  const auto ops = make_test_ops(1);
  const auto plan = [&](Offload offload) {
    StepSetup step;
    step.offload = {.optimizer = offload, .folder = "/nowhere"};
    return Engine(*ops, config, {.shape = {1, 8}, .compute = DType::bf16, .positions = 8}, step)
        .plan();
  };
  const auto states = [](const MemoryPlan& p, Tier tier) {
    uint64_t bytes = 0;
    for (const PlanLine& line : summary(p, tier))
      for (const char* name :
           {"parameters", "master weights", "gradients", "optimizer states", "gradients under way"})
        bytes += line.category == name ? line.bytes : 0;
    return static_cast<double>(bytes);
  };
  const MemoryPlan kept = plan(Offload::none), host = plan(Offload::host),
                   disk = plan(Offload::disk);
  const double elements = states(kept, Tier::device) / 18;  // master copy, parameters, 12 more
  EXPECT_LT(states(host, Tier::device), 2 * elements + 4 * 0.15 * elements);
  EXPECT_NEAR(states(host, Tier::host), 16 * elements, 1e-9 * elements);
  EXPECT_LT(states(disk, Tier::device), 2.6 * elements * 1.3) << "shards are whole pages";
  EXPECT_EQ(states(disk, Tier::host), 0);
  EXPECT_GE(states(disk, Tier::disk), 16 * elements);
}

// Once a step has run: 2 bytes an element, at most a bucket and three blocks of f32 gradients on
// their way, and what computing takes with or without offloading.
TEST(OffloadedMemory, TheDeviceArenaIsParametersAndABucket) {
  ModelConfig config = tiny_models()[2].config;
  config.layers = 24;
  const auto world = make_self_world();
  const Mesh mesh(*world, MeshShape{});
  Workload work = workload(config, DType::bf16, 1);
  RankTraining kept(mesh, work, {}),
      host(mesh, work, {.bucket_bytes = 100'000, .offload = {.optimizer = Offload::host}});
  EXPECT_EQ(host.step(1).loss, kept.step(1).loss);
  uint64_t largest = 0;
  for (const BlockTraits& block : host.engine.step_plan().traits)
    largest = std::max(largest, static_cast<uint64_t>(block.parameter_elements) * 4);
  uint64_t under_way = 0, states = 0;
  for (const PlanLine& line : summary(host.engine.plan(), Tier::device))
    if (line.category == "gradients under way") under_way = line.bytes;
  for (const PlanLine& line : summary(kept.engine.plan(), Tier::device))
    for (const char* state : {"parameters", "master weights", "gradients", "optimizer states"})
      states += line.category == state ? line.bytes : 0;
  const auto elements = static_cast<uint64_t>(host.engine.store().elements());
  EXPECT_EQ(states, 18 * elements);
  EXPECT_LE(under_way, 100'000 + 3 * largest);
  EXPECT_EQ(host.engine.arena().peak_bytes(),
            kept.engine.arena().peak_bytes() - states + 2 * elements + under_way);
  EXPECT_EQ(host.engine.host_arena().peak_bytes(), 16 * elements);
}

}  // namespace
}  // namespace rankine::test

#include <gtest/gtest.h>

#include "support/parallel_training.h"
#include "support/temporary_folder.h"

// Delayed updates follow their rule, bit for bit, on every layout.
namespace rankine::test {
namespace {

constexpr int64_t steps = 6;

Workload workload(const ModelConfig& config, DType compute, int micros = 1) {
  return {.config = config,
          .shape = {1, 10},
          .micros = micros,
          .compute = compute,
          .steps = steps,
          .optimizer = {.epsilon = 1e-3, .clip_grad = 0.5},
          .lr = 3e-3};
}

OffloadSetup delayed_from(int64_t step, Offload optimizer = Offload::host) {
  return {.optimizer = optimizer, .delayed_update = step};
}

void copy_values(const std::vector<NamedTensor>& from, const std::vector<NamedTensor>& to) {
  ASSERT_EQ(from.size(), to.size());
  for (size_t i = 0; i < from.size(); ++i)
    std::memcpy(to[i].data.data, from[i].data.data, static_cast<size_t>(to[i].data.bytes()));
}

// The rule by hand: one undelayed engine makes gradients and is never updated, another one has the
// model states; at the end of a step the first sees what the second had before this step's update.
struct ByHand {
  ByHand(const Mesh& mesh, const Workload& work)
      : eyes(mesh, still(work), {}), states(mesh, work, {}) {}

  static Workload still(Workload work) {
    work.lr = 0;
    return work;
  }

  StepReport step(int64_t number, int64_t delayed) {
    const StepReport report = eyes.step(number);
    const OptimizerOptions& options = states.workload.optimizer;
    const auto update = [&] {
      states.engine.store().update(adamw_step(options, number, states.workload.lr,
                                              clip_factor(options.clip_grad, report.grad_norm)));
    };
    copy_values(eyes.engine.store().gradients(), states.engine.store().gradients());
    if (number < delayed) update();
    copy_values(states.engine.store().weights(), eyes.engine.store().weights());
    eyes.engine.store().refresh_compute();
    if (number >= delayed) update();
    return report;
  }

  RankTraining eyes, states;
};

class DelayedUpdate : public ::testing::TestWithParam<TinyModel> {};

TEST_P(DelayedUpdate, IsTheRuleByHand) {
  const TemporaryFolder folder;
  const auto world = make_self_world();
  const Mesh mesh(*world, MeshShape{});
  for (const DType compute : {DType::f32, DType::bf16})
    for (const int64_t from : {1, 3}) {
      const Workload work = workload(GetParam().config, compute);
      ByHand rule(mesh, work);
      std::vector<double> losses, norms;
      for (int64_t step = 1; step <= steps; ++step) {
        const StepReport report = rule.step(step, from);
        losses.push_back(report.loss);
        norms.push_back(report.grad_norm);
      }
      std::map<std::string, std::vector<float>> weights;
      collect(rule.states.engine.store().weights(), *rule.states.ops, weights);
      for (const Offload tier : {Offload::host, Offload::disk})
        for (const Offload parameters : {Offload::none, tier}) {
          Layout layout{.offload = delayed_from(from, tier)};
          layout.offload.folder = folder.path();
          layout.offload.parameters = parameters;
          SCOPED_TRACE(fmt::format("{}, {}", dtype_name(compute), to_string(layout)));
          const Outcome out = train_rank(mesh, work, layout);
          EXPECT_EQ(out.losses, losses);
          EXPECT_EQ(out.norms, norms);
          EXPECT_EQ(out.weights, weights);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Models, DelayedUpdate, ::testing::ValuesIn(tiny_models()),
                         [](const auto& tested) { return tested.param.name; });

TEST(DelayedUpdates, AreTheSameOnEveryLayout) {
  const TemporaryFolder folder;
  for (const TinyModel& tiny : {tiny_models()[0], tiny_models()[2]}) {
    const Workload work = workload(tiny.config, DType::bf16, 4);
    Layout one{.strict = true, .offload = delayed_from(2)};
    const Outcome reference = train_as_threads(work, one);
    one.offload.delayed_update = 0;
    EXPECT_NE(train_as_threads(work, one).losses, reference.losses);
    for (Layout layout :
         {Layout{.data = 2}, Layout{.data = 2, .zero = 1}, Layout{.data = 4, .zero = 2},
          Layout{.data = 2, .zero = 3}, Layout{.pipeline = 2},
          Layout{.data = 2, .zero = 1, .pipeline = 2, .schedule = ScheduleKind::zero_bubble}})
      for (const Offload tier : {Offload::host, Offload::disk}) {
        layout.strict = true;
        layout.offload = delayed_from(2, tier);
        layout.offload.activations = layout.offload.parameters = tier;
        layout.offload.folder = folder.path();
        SCOPED_TRACE(tiny.name + ": " + to_string(layout));
        const Outcome out = train_as_threads(work, layout);
        EXPECT_EQ(out.losses, reference.losses);
        EXPECT_EQ(out.norms, reference.norms);
        EXPECT_EQ(out.weights, reference.weights);
      }
  }
}

// Until the first delayed step nothing is different, and with none from then on never.
TEST(DelayedUpdates, BeginWhereTheyAreAskedTo) {
  const Workload work = workload(tiny_models()[2].config, DType::bf16);
  const Outcome never = train_as_threads(work, {.offload = delayed_from(0)});
  for (const int64_t from : {int64_t{2}, int64_t{4}, steps, steps + 1}) {
    const Outcome out = train_as_threads(work, {.offload = delayed_from(from)});
    for (int64_t step = 1; step <= steps; ++step) {
      // The step behind the first delayed one still sees the parameters of the one before.
      const auto at = static_cast<size_t>(step - 1);
      EXPECT_EQ(out.losses[at] == never.losses[at], step <= from) << from << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace rankine::test

#include <gtest/gtest.h>

#include "planner/model_states.h"
#include "planner/traffic.h"
#include "support/parallel_training.h"

// What a rank keeps and sends is what ZeRO's formulas say, for every stage and degree.
namespace rankine::test {
namespace {

uint64_t bytes_of(const MemoryPlan& plan, std::string_view category) {
  uint64_t bytes = 0;
  for (const Allocation& entry : plan.entries())
    if (entry.category == category) bytes += entry.bytes;
  return bytes;
}

class Formulas : public ::testing::TestWithParam<TinyModel> {};

TEST_P(Formulas, ModelStatesOfARankAreThoseOfTheTable) {
  for (const int ranks : {1, 2, 3, 8, 64})
    for (int zero = 0; zero <= 3; ++zero)
      for (const DType compute : {DType::f32, DType::bf16}) {
        SCOPED_TRACE(fmt::format("{} ranks, stage {}, {}", ranks, zero, dtype_name(compute)));
        const MeshShape shape{{1, ranks, 1}};
        run_ranks_as_threads(ranks, {.mesh = shape}, [&](World& world) {
          const Mesh mesh(world, shape);
          const auto ops = make_test_ops(1);
          const Engine engine(*ops, GetParam().config,
                              {.shape = {1, 8}, .compute = compute, .positions = 8},
                              {.zero = zero_stage(zero), .mesh = &mesh});
          const int64_t elements = engine.store().elements();
          const ModelStates expected =
              model_states(elements, ranks, zero_stage(zero), state_widths(compute));
          const MemoryPlan& plan = engine.plan();
          EXPECT_EQ(bytes_of(plan, "parameters"), expected.parameter_bytes);
          EXPECT_EQ(bytes_of(plan, "gradients"), expected.gradient_bytes);
          EXPECT_EQ(bytes_of(plan, "optimizer states") + bytes_of(plan, "master weights"),
                    expected.optimizer_bytes);
          // Padding: each block to whole 64s of every rank, each group of parameters to 64.
          const int64_t logical = parameter_count(GetParam().config);
          const auto blocks = static_cast<int64_t>(engine.store().layout().blocks().size());
          const auto groups = static_cast<int64_t>(engine.store().layout().groups().size());
          EXPECT_GE(elements, logical);
          EXPECT_LE(elements, logical + blocks * 64 * ranks + groups * 64 +
                                  2 * 64 * GetParam().config.hidden);
        });
      }
}

TEST_P(Formulas, ArenasOf64RanksHoldExactlyThePlan) {
  const Workload work{.config = GetParam().config, .shape = {1, 6}, .micros = 64, .steps = 1};
  for (const int zero : {1, 3}) train_as_threads(work, {.data = 64, .zero = zero});
}

INSTANTIATE_TEST_SUITE_P(Models, Formulas, ::testing::ValuesIn(tiny_models()),
                         [](const ::testing::TestParamInfo<TinyModel>& tiny) {
                           return tiny.param.name;
                         });

// Wide enough that no block is small, and with sizes that all degrees divide.
ModelConfig wide_model() {
  ModelConfig config = tiny_models()[2].config;
  config.hidden = 96;
  config.heads = config.kv_heads = 4;
  config.head_dim = 24;
  config.feed_forward = 192;
  config.vocabulary = 256;
  config.layers = 4;
  return config;
}

TEST(Traffic, BytesSentAreTheTheory) {
  for (const DType compute : {DType::f32, DType::bf16})
    for (const int ranks : {2, 4})
      for (const int accumulation : {1, 3})
        for (int zero = 0; zero <= 3; ++zero) {
          SCOPED_TRACE(fmt::format("{} ranks, stage {}, {} micro-batches, {}", ranks, zero,
                                   accumulation, dtype_name(compute)));
          const Workload work{.config = wide_model(),
                              .shape = {1, 8},
                              .micros = ranks * accumulation,
                              .compute = compute,
                              .steps = 2};
          const Outcome out = train_as_threads(work, {.data = ranks, .zero = zero});
          const Traffic theory =
              data_parallel_traffic(out.elements, ranks, zero_stage(zero), accumulation);
          const auto width = static_cast<double>(dtype_bytes(compute));
          const double expected = 4 * theory.gradients + width * theory.parameters;
          for (const AxisTraffic& rank : out.traffic) {
            const uint64_t sent = rank.data.bytes_sent;
            if (zero < 3) {
              EXPECT_EQ(static_cast<double>(sent), expected);
              continue;
            }
            // Stage 3 stays below: the last blocks are kept from forward to backward, and the
            // embedding's backward reads no parameters.
            EXPECT_LT(static_cast<double>(sent), expected);
            EXPECT_GT(static_cast<double>(sent), 0.6 * expected);
          }
        }
}

}  // namespace
}  // namespace rankine::test

#include <gtest/gtest.h>

#include <cmath>

#include "support/parallel_training.h"

// Every layout of the data axis trains as one rank does: loss, gradient norm before clipping and
// every parameter by name.
namespace rankine::test {
namespace {

struct Case {
  TinyModel model;
  DType compute;
  int accumulation;
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return fmt::format("{}_{}_x{}", info.param.model.name, dtype_name(info.param.compute),
                     info.param.accumulation);
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const TinyModel& model : tiny_models())
    for (const DType compute : {DType::f32, DType::bf16})
      for (const int accumulation : {1, 4}) out.push_back({model, compute, accumulation});
  return out;
}

Workload workload(const Case& c, int data) {
  return {.config = c.model.config,
          .shape = {1, 10},
          .micros = data * c.accumulation,
          .compute = c.compute,
          // A key bias has gradient 0 but for rounding, which a small epsilon would blow up.
          .optimizer = {.epsilon = 1e-3, .clip_grad = 0.5}};
}

class DataParallel : public ::testing::TestWithParam<Case> {};

TEST_P(DataParallel, EveryDegreeAndStageTrainsAsOneRank) {
  for (const int data : {2, 3, 4, 8}) {
    const Workload work = workload(GetParam(), data);
    const Outcome reference = train_as_threads(work, {});
    // f32 sums in another order; bf16 gradients of micro-batches are the same, too.
    const double tolerance = 2e-5;
    for (int zero = 0; zero <= 3; ++zero) {
      SCOPED_TRACE(fmt::format("{} ranks, stage {}", data, zero));
      expect_close(train_as_threads(work, {.data = data, .zero = zero}), reference, tolerance);
    }
  }
}

TEST_P(DataParallel, StrictIsBitForBitTheSameAtEveryPowerOfTwo) {
  Workload work = workload(GetParam(), 8);
  const Outcome reference = train_as_threads(work, {.strict = true});
  for (const int data : {1, 2, 4, 8})
    for (int zero = 0; zero <= 3; ++zero) {
      SCOPED_TRACE(fmt::format("{} ranks, stage {}", data, zero));
      const Outcome out = train_as_threads(work, {.data = data, .zero = zero, .strict = true});
      EXPECT_EQ(out.losses, reference.losses);
      EXPECT_EQ(out.norms, reference.norms);
      EXPECT_EQ(out.weights, reference.weights);
    }
}

// Loss scaling: an overflow on any rank makes all of them skip the step and halve the scale alike.
TEST(DataParallelF16, OverflowsAreSkippedByAllRanksTogether) {
  Workload work{.config = tiny_models()[0].config,
                .shape = {1, 10},
                .micros = 4,
                .compute = DType::f16,
                .steps = 4,
                .optimizer = {.epsilon = 1e-3},
                .lr = 1e-3};
  // Weights so large that scaled gradients leave f16's range in the first steps.
  work.config.initializer_range = 3;
  const Outcome reference = train_as_threads(work, {});
  EXPECT_GT(reference.skipped, 0) << "the case must overflow to test anything";
  for (int zero = 0; zero <= 3; ++zero) {
    SCOPED_TRACE(fmt::format("stage {}", zero));
    const Outcome out = train_as_threads(work, {.data = 4, .zero = zero});
    EXPECT_EQ(out.skipped, reference.skipped);
    EXPECT_EQ(out.loss_scale, reference.loss_scale);
  }
}

TEST(DataParallelF16, TrainsAsOneRank) {
  const Workload work{.config = tiny_models()[2].config,
                      .shape = {1, 10},
                      .micros = 4,
                      .compute = DType::f16,
                      .optimizer = {.epsilon = 1e-3}};
  const Outcome reference = train_as_threads(work, {});
  for (int zero = 0; zero <= 3; ++zero)
    expect_close(train_as_threads(work, {.data = 2, .zero = zero}), reference, 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Models, DataParallel, ::testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace rankine::test

#include <gtest/gtest.h>

#include <cmath>

#include "support/tiny_models.h"
#include "support/training.h"

// Whole steps: gradients against the loss itself, accumulation, programs, memory.
namespace rankine::test {
namespace {

constexpr MicroShape shape{2, 16};

struct Tokens {
  std::vector<int32_t> ids, targets;
};

Tokens tokens_for(const ModelConfig& config, int micros, uint64_t seed) {
  const auto rows = static_cast<size_t>(shape.rows() * micros);
  Tokens t{random_ids(rows, config.vocabulary, seed),
           random_ids(rows, config.vocabulary, seed + 1)};
  for (size_t i = 0; i < rows; i += 7) t.targets[i] = -100;  // some positions count for nothing
  return t;
}

// A direction in one parameter, and the loss's slope along it by central differences.
class Gradients : public ::testing::TestWithParam<TinyModel> {};

TEST_P(Gradients, AgreeWithCentralDifferencesOfTheLoss) {
  ModelConfig config = GetParam().config;
  Training training(config, {.shape = shape, .optimizer = {.clip_grad = 0}});
  Ops& ops = *training.ops;
  const Tokens t = tokens_for(config, 1, 3);
  // With learning rate 0 a step leaves the weights alone; the same step number draws the same
  // masks.
  const auto loss = [&] { return training.trainer->step(1, 0.0, t.ids, t.targets).loss; };
  loss();
  const std::vector<NamedTensor> weights = training.engine.store().weights();
  const std::vector<NamedTensor> gradients = training.engine.store().gradients();
  std::vector<std::vector<float>> grads;
  for (const NamedTensor& g : gradients) grads.push_back(host_copy(ops, g.data));

  for (size_t p = 0; p < weights.size(); ++p) {
    const std::vector<float> before = host_copy(ops, weights[p].data);
    double length = 0;
    for (const float g : grads[p]) length += static_cast<double>(g) * static_cast<double>(g);
    length = std::sqrt(length);
    // Along its own gradient the slope is the gradient's length.
    const auto moved = [&](double by) {
      std::vector<float> x = before;
      for (size_t i = 0; i < x.size(); ++i)
        x[i] += static_cast<float>(by * static_cast<double>(grads[p][i]) / std::max(length, 1e-30));
      ops.upload(x.data(), weights[p].data);
      return loss();
    };
    const double h = 5e-3;
    const double slope = (moved(h) - moved(-h)) / (2 * h);
    ops.upload(before.data(), weights[p].data);
    EXPECT_NEAR(slope, length, 0.02 * length + 5e-4) << weights[p].name;
  }
}

TEST_P(Gradients, DoNotDependOnHowTheBatchIsCutOrScheduled) {
  ModelConfig config = GetParam().config;
  config.dropout = 0;  // masks are drawn per micro-batch
  const Tokens t = tokens_for(config, 4, 11);
  const auto gradients = [&](const Training::Setup& setup) {
    Training training(config, setup);
    const StepReport report = training.trainer->step(1, 0.0, t.ids, t.targets);
    std::vector<float> all{static_cast<float>(report.loss), static_cast<float>(report.grad_norm)};
    for (const NamedTensor& g : training.engine.store().gradients())
      for (const float x : host_copy(*training.ops, g.data)) all.push_back(x);
    return all;
  };
  const std::vector<float> whole = gradients({.shape = {shape.batch * 4, shape.tokens}});
  const std::vector<float> cut = gradients({.shape = shape, .micros = 4});
  const std::vector<float> late =
      gradients({.shape = shape, .program = "0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3 0U"});
  ASSERT_EQ(whole.size(), cut.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(cut[i], whole[i], 1e-5 + 1e-4 * std::abs(whole[i])) << "element " << i;
    // A tied matrix sums its two uses in the order the schedule brings them; all else in one order.
    if (config.tied)
      EXPECT_NEAR(late[i], cut[i], 1e-6 + 1e-5 * std::abs(cut[i])) << "element " << i;
    else
      EXPECT_EQ(late[i], cut[i]) << "element " << i;
  }
}

TEST_P(Gradients, SixteenBitStepsFollowTheF32Ones) {
  ModelConfig config = GetParam().config;
  config.dropout = 0;
  const Tokens t = tokens_for(config, 1, 5);
  const auto run = [&](DType compute) {
    Training training(config, {.shape = shape, .compute = compute});
    std::vector<StepReport> reports;
    for (int64_t step = 1; step <= 4; ++step)
      reports.push_back(training.trainer->step(step, 1e-3, t.ids, t.targets));
    return reports;
  };
  const auto exact = run(DType::f32);
  EXPECT_LT(exact.back().loss, exact.front().loss) << "the loss falls";
  for (const DType compute : {DType::bf16, DType::f16}) {
    const auto rounded = run(compute);
    const double tolerance = compute == DType::bf16 ? 0.02 : 0.004;
    for (size_t i = 0; i < exact.size(); ++i) {
      EXPECT_FALSE(rounded[i].skipped);
      EXPECT_NEAR(rounded[i].loss, exact[i].loss, tolerance * exact[i].loss) << dtype_name(compute);
      EXPECT_NEAR(rounded[i].grad_norm, exact[i].grad_norm, 4 * tolerance * exact[i].grad_norm)
          << dtype_name(compute);
    }
  }
}

TEST_P(Gradients, ArenaPeakIsThePlanToTheByte) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    Training training(GetParam().config, {.shape = shape, .compute = compute});
    const Tokens t = tokens_for(GetParam().config, 1, 5);
    training.trainer->step(1, 1e-3, t.ids, t.targets);
    EXPECT_EQ(training.engine.arena().peak_bytes(),
              training.engine.plan().peak_bytes(Tier::device));
    EXPECT_EQ(training.engine.arena().reserved_bytes(), training.engine.arena().peak_bytes());
    EXPECT_TRUE(training.engine.arena().unused().empty());
  }
}

TEST_P(Gradients, CachedDecodingGivesTheLogitsOfTheWholeSequence) {
  const ModelConfig& config = GetParam().config;
  const auto ops = make_cpu_ops(2);
  const int64_t tokens = 21;
  const std::vector<int32_t> ids = random_ids(static_cast<size_t>(tokens), config.vocabulary, 9);
  Engine whole(*ops, config,
               {.shape = {1, tokens},
                .compute = DType::f32,
                .purpose = Purpose::inference,
                .positions = tokens});
  whole.allocate();
  whole.store().initialise(7);
  const Tensor all = whole.executor().logits(ids, {1, tokens}, {}, tokens);
  const std::vector<float> expected = host_copy(*ops, all);
  const auto width = static_cast<size_t>(all.shape[1]);

  ExecutorSetup setup = generation_setup(DType::f32, tokens);
  setup.shape.tokens = 4;  // the prompt comes in several pieces
  const auto cached_ops = make_cpu_ops(2);
  Engine cached(*cached_ops, config, setup);
  cached.allocate();
  cached.store().initialise(7);
  Generator generator(cached, {}, {});
  size_t past = 0;
  for (const size_t count : {size_t{10}, size_t{1}, size_t{3}, size_t{1}, size_t{6}}) {
    const std::span<const float> logits = generator.append(std::span(ids).subspan(past, count));
    past += count;
    for (size_t i = 0; i < logits.size(); ++i)
      ASSERT_NEAR(logits[i], expected[(past - 1) * width + i], 2e-4) << "position " << past;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Gradients, ::testing::ValuesIn(tiny_models()),
                         [](const auto& tested) { return tested.param.name; });

TEST(Dropout, ChangesTrainingButNotEvaluation) {
  ModelConfig config = tiny_models()[0].config;
  const Tokens t = tokens_for(config, 1, 5);
  Training plain(config, {.shape = shape});
  config.dropout = 0.5;
  Training dropping(config, {.shape = shape});
  const auto evaluated = [&](Training& training) {
    return training.engine.executor().evaluate(t.ids, t.targets, shape);
  };
  EXPECT_EQ(evaluated(dropping), evaluated(plain));
  const double first = dropping.trainer->step(1, 0.0, t.ids, t.targets).loss;
  EXPECT_NE(first, plain.trainer->step(1, 0.0, t.ids, t.targets).loss);
  EXPECT_EQ(first, dropping.trainer->step(1, 0.0, t.ids, t.targets).loss);
  EXPECT_NE(first, dropping.trainer->step(2, 0.0, t.ids, t.targets).loss);
}

TEST(LossScaling, AnOverflowSkipsTheUpdateAndKeepsTheWeights) {
  const ModelConfig config = tiny_models()[2].config;
  Training training(config, {.shape = shape, .compute = DType::f16});
  const Tokens t = tokens_for(config, 1, 5);
  const std::vector<NamedTensor> weights = training.engine.store().weights();
  std::vector<float> spoiled = host_copy(*training.ops, weights.back().data);
  spoiled[0] = std::nanf("");
  training.ops->upload(spoiled.data(), weights.back().data);
  training.engine.store().refresh_compute();
  const std::vector<float> before = host_copy(*training.ops, weights[0].data);
  const StepReport report = training.trainer->step(1, 1e-2, t.ids, t.targets);
  EXPECT_TRUE(report.skipped);
  EXPECT_EQ(host_copy(*training.ops, weights[0].data), before);
  EXPECT_EQ(training.trainer->state().updates, 0);
  training.trainer->step(2, 1e-2, t.ids, t.targets);
  EXPECT_EQ(training.trainer->state().loss_scale.scale, 32768);
}

}  // namespace
}  // namespace rankine::test

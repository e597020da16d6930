#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "inference/evaluator.h"
#include "runtime/finite.h"
#include "runtime/metrics.h"
#include "runtime/run_state.h"
#include "support/errors.h"
#include "support/tiny_models.h"
#include "support/training.h"

// Steps without a token to learn, and values that are not finite.
namespace rankine::test {
namespace {

constexpr MicroShape shape{2, 16};

struct Tokens {
  std::vector<int32_t> ids, targets;
};

Tokens tokens_for(const ModelConfig& config, int micros, uint64_t seed) {
  const auto rows = static_cast<size_t>(shape.rows() * micros);
  return {random_ids(rows, config.vocabulary, seed), random_ids(rows, config.vocabulary, seed + 1)};
}

std::vector<float> weights_of(const Training& training) {
  std::vector<float> all;
  for (const NamedTensor& weight : training.engine.store().weights())
    for (const float x : host_copy(*training.ops, weight.data)) all.push_back(x);
  return all;
}

void put(Training& training, const std::string& name, int64_t index, float value) {
  for (const NamedTensor& weight : training.engine.store().weights())
    if (weight.name == name) training.ops->upload(&value, weight.data.range(index, 1));
  training.engine.store().refresh_compute();
}

ModelConfig small_model() {
  ModelConfig config = tiny_models()[2].config;
  config.dropout = 0;
  return config;
}

TEST(NoTargets, AStepHasNoLossAndChangesNothing) {
  for (const DType compute : {DType::f32, DType::f16}) {
    Training with(small_model(), {.shape = shape, .compute = compute}),
        without(small_model(), {.shape = shape, .compute = compute});
    const Tokens t = tokens_for(small_model(), 1, 3);
    const std::vector<int32_t> none(t.targets.size(), -1);
    for (Training* training : {&with, &without}) training->trainer->step(1, 1e-2, t.ids, t.targets);
    const std::vector<float> before = weights_of(with);
    const Trainer::State state = with.trainer->state();
    const StepReport report = with.trainer->step(2, 1e-2, t.ids, none);
    EXPECT_TRUE(std::isnan(report.loss));
    EXPECT_TRUE(std::isnan(report.grad_norm));
    EXPECT_EQ(report.tokens, 0);
    EXPECT_FALSE(report.skipped);
    EXPECT_EQ(weights_of(with), before);
    EXPECT_EQ(with.trainer->state().updates, state.updates);
    EXPECT_EQ(with.trainer->state().loss_scale.finite_steps, state.loss_scale.finite_steps);
    // The moments have not decayed, and the bias correction has not moved on.
    for (int64_t step = 3; step <= 4; ++step)
      EXPECT_EQ(with.trainer->step(step, 1e-2, t.ids, t.targets).loss,
                without.trainer->step(step, 1e-2, t.ids, t.targets).loss);
    EXPECT_EQ(weights_of(with), weights_of(without));
    StepMetrics metrics;
    metrics.report = report;
    EXPECT_NE(metrics_line(metrics).find("\"loss\":null,\"grad_norm\":null"), std::string::npos);
  }
}

TEST(NoTargets, MicroBatchesWithoutThemAddNothing) {
  const Tokens t = tokens_for(small_model(), 2, 9);
  Tokens padded = tokens_for(small_model(), 4, 5);
  std::ranges::fill(padded.targets, -1);
  const auto rows = static_cast<size_t>(shape.rows());
  for (const size_t micro : {size_t{0}, size_t{1}}) {  // at places 1 and 3
    const auto from = static_cast<std::ptrdiff_t>(micro * rows),
               to = static_cast<std::ptrdiff_t>((2 * micro + 1) * rows);
    std::copy_n(t.ids.begin() + from, rows, padded.ids.begin() + to);
    std::copy_n(t.targets.begin() + from, rows, padded.targets.begin() + to);
  }
  Training two(small_model(), {.shape = shape, .micros = 2}),
      four(small_model(), {.shape = shape, .micros = 4});
  const StepReport a = two.trainer->step(1, 1e-2, t.ids, t.targets),
                   b = four.trainer->step(1, 1e-2, padded.ids, padded.targets);
  EXPECT_EQ(b.tokens, a.tokens);
  EXPECT_EQ(b.loss, a.loss);
  EXPECT_EQ(b.grad_norm, a.grad_norm);
  EXPECT_EQ(weights_of(four), weights_of(two));
}

TEST(Hopeless, SkipsAreCountedUntilOneIsNot) {
  Training training(small_model(), {.shape = shape});
  const Tokens t = tokens_for(small_model(), 1, 5);
  put(training, "layers.1.mlp.down.weight", 3, std::nanf(""));
  for (int64_t step = 1; step <= 3; ++step)
    EXPECT_EQ(training.trainer->step(step, 1e-3, t.ids, t.targets).hopeless, step);
  RunState stored;
  stored.trainer = training.trainer->state();
  stored.model = small_model();
  stored.model.head_dim = stored.model.hidden / stored.model.heads;
  EXPECT_EQ(parse_run_state(run_state_text(stored), "state").trainer.hopeless, 3);
  put(training, "layers.1.mlp.down.weight", 3, 0.1F);
  EXPECT_EQ(training.trainer->step(4, 1e-3, t.ids, t.targets).hopeless, 0);
}

TEST(Hopeless, AScaleThatIsTooLargeIsNot) {
  Training training(small_model(), {.shape = shape, .compute = DType::f16});
  const Tokens t = tokens_for(small_model(), 1, 5);
  Trainer::State state = training.trainer->state();
  state.loss_scale.scale = std::ldexp(1.0, 45);
  training.trainer->restore(state);
  int skipped = 0;
  for (int64_t step = 1; step <= 60; ++step) {
    const StepReport report = training.trainer->step(step, 1e-4, t.ids, t.targets);
    EXPECT_EQ(report.hopeless, 0) << step;
    skipped += report.skipped ? 1 : 0;
  }
  EXPECT_GT(skipped, 15);
  EXPECT_GT(training.trainer->state().updates, 10);
}

TEST(Hopeless, IsAtOnceALossThatIsNotFinite) {
  Training training(small_model(), {.shape = shape, .compute = DType::f16});
  const Tokens t = tokens_for(small_model(), 1, 5);
  put(training, "layers.0.attention.out.weight", 0, std::nanf(""));
  EXPECT_EQ(training.trainer->step(1, 1e-3, t.ids, t.targets).hopeless, 1);
}

TEST(Diagnosis, NamesTheFirstBlockAndTensor) {
  struct Case {
    const char* weight;
    float value;
    const char* says;
  };
  for (const DType compute : {DType::f32, DType::f16})
    for (const auto& [weight, value, says] : {
             Case{"layers.1.mlp.down.weight", std::nanf(""),
                  "block layers.1, the weight 'layers.1.mlp.down.weight': 1 of "},
             Case{"layers.2.attention_norm.weight", INFINITY,
                  "block layers.2, the weight 'layers.2.attention_norm.weight': 1 of "},
             Case{"embedding.tokens.weight", NAN, "block embedding, the weight 'embedding"},
             Case{"head.norm.weight", NAN, "block head, the weight 'head.norm.weight'"},
             // Finite, but too much for what follows.
             Case{"layers.1.attention_norm.weight", compute == DType::f32 ? 3e38F : 6e4F,
                  "block layers.1, the activation '"},
         }) {
      Training training(small_model(), {.shape = shape, .compute = compute});
      const Tokens t = tokens_for(small_model(), 1, 5);
      const bool looked_up = std::string_view(weight).starts_with("embedding");
      const int64_t first = looked_up ? int64_t{t.ids[0]} * small_model().hidden : 0;
      for (int64_t i = first; i < first + (std::isfinite(value) ? 9 : 1); ++i)
        put(training, weight, i, value);
      const StepReport report = training.trainer->step(1, 1e-3, t.ids, t.targets);
      ASSERT_TRUE(report.skipped) << weight;
      EXPECT_EQ(training.trainer->diagnose(report, t.ids, t.targets).rfind(says, 0), 0U)
          << training.trainer->diagnose(report, t.ids, t.targets);
    }
}

TEST(Diagnosis, OfAFiniteStepIsEmpty) {
  Training training(small_model(), {.shape = shape, .micros = 2});
  const Tokens t = tokens_for(small_model(), 2, 5);
  const StepReport report = training.trainer->step(1, 0, t.ids, t.targets);
  EXPECT_EQ(training.trainer->diagnose(report, t.ids, t.targets), "");
}

TEST(Diagnosis, EvaluationFailsAndNamesIt) {
  const Evaluator::Setup setup{2, 16, 16};
  const auto ops = make_cpu_ops(2);
  Engine engine(*ops, small_model(), evaluation_setup(DType::f32, setup));
  engine.allocate();
  engine.store().initialise(7);
  Evaluator good(engine, setup);
  good.add(random_ids(40, small_model().vocabulary, 1));
  EXPECT_TRUE(std::isfinite(good.finish()[0].loss));
  for (const NamedTensor& weight : engine.store().weights())
    if (weight.name == "layers.1.mlp.up.weight") ops->fill(weight.data, 3e38F);
  engine.store().refresh_compute();
  Evaluator bad(engine, setup, [](size_t n) { return fmt::format("text {}", n); });
  const Error error = error_of([&] {
    bad.add(random_ids(5, small_model().vocabulary, 2));
    bad.finish();
  });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_EQ(std::string(error.what())
                .rfind("the loss of text 0 is not finite: it begins in block layers.1, the "
                       "activation 'output'",
                       0),
            0U)
      << error.what();
}

TEST(FiniteStates, TheFirstIsNamedInTheModelsOrderAndAllAreCounted) {
  Training training(small_model(), {.shape = shape});
  const auto look = [&] {
    const auto weights = training.engine.store().weights(Copies::counted),
               momentum = training.engine.store().momentum(Copies::counted);
    const std::vector<TensorGroup> groups{{"weights", weights}, {"momentum", momentum}};
    return find_non_finite(training.engine, groups);
  };
  EXPECT_FALSE(look());
  const float inf = INFINITY;
  const auto momentum = training.engine.store().momentum();
  training.ops->upload(&inf, momentum[0].data.range(0, 1));
  EXPECT_EQ(describe(*look()), fmt::format("1 value of the momentum is not finite, it is inf, "
                                           "element [0, 0] of '{}'",
                                           momentum[0].name));
  put(training, "layers.2.mlp.down.weight", 0, std::nanf(""));
  put(training, "layers.0.mlp.down.weight", 2 * 52 + 7, -INFINITY);  // [24, 52]
  EXPECT_EQ(describe(*look()),
            "3 values of the weights are not finite, the first is -inf, element "
            "[2, 7] of 'layers.0.mlp.down.weight'");
}

TEST(FiniteStates, WeightsThatTheDtypeCannotHoldAreNamed) {
  for (const DType compute : {DType::f16, DType::bf16}) {
    Training training(small_model(), {.shape = shape, .compute = compute});
    EXPECT_NO_THROW(require_computable(training.engine));
    put(training, "layers.1.mlp.up.weight", 5, 70000);
    if (compute == DType::bf16) {
      EXPECT_NO_THROW(require_computable(training.engine));
      continue;
    }
    EXPECT_NE(message_of([&] {
                require_computable(training.engine);
              }).find("element [0, 5] of 'layers.1.mlp.up.weight' in f16: the weight is beyond"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace rankine::test

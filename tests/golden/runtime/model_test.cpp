#include "models.h"
#include "support/parallel_training.h"

// Logits, losses, gradients, AdamW runs and greedy continuations of an independent implementation,
// in f32, within the tolerances its README suggests.
namespace rankine::test {
namespace {

WholeTensors collected(const std::vector<NamedTensor>& tensors, Ops& ops) {
  WholeTensors out;
  collect(tensors, ops, out);
  return out;
}

class GoldenModel : public GoldenModelCase {
 protected:
  // Tied models have logits up to 21, so their rounding is larger.
  double logit_tolerance() const { return config.tied ? 1e-4 : 5e-5; }

  void check_run(double clip, const Json& expected, const char* norms_key) {
    Training training(config, {.shape = shape(), .optimizer = optimizer(clip)});
    load(training.engine);
    const Json& lrs = golden["adamw"]["lrs"];
    for (int64_t s = 0; s < batches.steps; ++s) {
      const auto i = static_cast<size_t>(s);
      const StepReport report =
          training.trainer->step(s + 1, lrs[i].get<double>(), batches.ids[i], batches.targets[i]);
      EXPECT_NEAR(report.loss, expected["losses"][i].get<double>(), 1e-4) << "step " << s;
      const double norm = expected[norms_key][i];
      EXPECT_NEAR(report.grad_norm, norm, 1e-4 * norm) << "step " << s;
    }
    const double loss =
        training.engine.executor().evaluate(batches.ids[0], batches.targets[0], shape()) /
        static_cast<double>(shape().rows());
    EXPECT_NEAR(loss, expected["loss_on_batch0_after"].get<double>(), 1e-4);
    if (expected.contains("final_params"))
      check_parameters(collected(training.engine.store().weights(), *training.ops),
                       expected["final_params"]);
  }
};

TEST_P(GoldenModel, BothGenerationsOfConfigsAgree) {
  if (!open()) return;
  if (!std::filesystem::exists(folder / "config.v5.json")) GTEST_SKIP() << "no config.v5.json";
  EXPECT_EQ(read_hf_config(folder / "config.v5.json"), config);
}

TEST_P(GoldenModel, Logits) {
  if (!open()) return;
  const auto ops = make_test_ops(2);
  Engine engine(*ops, config,
                {.shape = shape(),
                 .compute = DType::f32,
                 .purpose = Purpose::inference,
                 .positions = batches.tokens});
  engine.allocate();
  load(engine);
  const Tensor all = engine.executor().logits(batches.ids[0], shape(), {}, shape().rows());
  const std::vector<float> padded = host_copy(*ops, all);
  std::vector<float> logits;
  for (int64_t row = 0; row < shape().rows(); ++row) {
    const auto begin = padded.begin() + row * all.shape[1];
    logits.insert(logits.end(), begin, begin + config.vocabulary);
  }
  EXPECT_LE(largest_difference(logits, read_raw<float>(*file, "logits")), logit_tolerance());
}

TEST_P(GoldenModel, LossesAndGradients) {
  if (!open()) return;
  Training training(config, {.shape = shape(), .optimizer = optimizer(0)});
  load(training.engine);
  const StepReport report = training.trainer->step(1, 0.0, batches.ids[0], batches.targets[0]);
  EXPECT_NEAR(report.loss, golden["loss"].get<double>(), 1e-5);
  const double norm = golden["grad_norm"];
  EXPECT_NEAR(report.grad_norm, norm, 1e-4 * norm);
  check_gradients(collected(training.engine.store().gradients(), *training.ops));
}

TEST_P(GoldenModel, MaskedTargetsDivideByTheValidOnes) {
  if (!open()) return;
  std::vector<int32_t> targets;
  for (const int64_t t : read_raw<int64_t>(*file, "masked_targets"))
    targets.push_back(static_cast<int32_t>(t));
  Training training(config, {.shape = shape()});
  load(training.engine);
  EXPECT_NEAR(training.trainer->step(1, 0.0, batches.ids[0], targets).loss,
              golden["loss_masked"].get<double>(), 1e-5);
}

TEST_P(GoldenModel, MicroBatchesGiveTheSameGradients) {
  if (!open()) return;
  Training training(config, {.shape = {1, batches.tokens},
                             .micros = static_cast<int>(batches.batch),
                             .optimizer = optimizer(0)});
  load(training.engine);
  const StepReport report = training.trainer->step(1, 0.0, batches.ids[0], batches.targets[0]);
  EXPECT_NEAR(report.loss, golden["loss"].get<double>(), 1e-5);
  EXPECT_NEAR(report.grad_norm, golden["grad_norm"].get<double>(),
              1e-4 * golden["grad_norm"].get<double>());
}

TEST_P(GoldenModel, AdamwRun) {
  if (!open()) return;
  check_run(golden["adamw"]["clip_norm"], golden["adamw"], "grad_norms_before_clip");
}

TEST_P(GoldenModel, AdamwRunWithoutClipping) {
  if (!open()) return;
  if (!golden["adamw"].contains("variant_no_clip")) GTEST_SKIP() << "not recorded";
  check_run(0, golden["adamw"]["variant_no_clip"], "grad_norms");
}

TEST_P(GoldenModel, AdamwRunClippedOnSomeSteps) {
  if (!open()) return;
  if (!golden["adamw"].contains("variant_clip_median")) GTEST_SKIP() << "not recorded";
  const Json& variant = golden["adamw"]["variant_clip_median"];
  check_run(variant["clip_norm"], variant, "grad_norms_before_clip");
}

TEST_P(GoldenModel, GreedyContinuation) {
  if (!open()) return;
  const std::vector<int32_t> prompt = golden["greedy"]["prompt"];
  const std::vector<int32_t> expected = golden["greedy"]["new_tokens"];
  const auto positions = static_cast<int64_t>(prompt.size() + expected.size());
  const auto ops = make_test_ops(2);
  Engine engine(*ops, config, generation_setup(DType::f32, positions));
  engine.allocate();
  load(engine);
  std::vector<int32_t> chosen;
  // The recorded continuation does not stop at an end token.
  Generator(engine, {.temperature = 0}, {})
      .run_on({prompt, static_cast<int64_t>(expected.size())}, [&](size_t, int32_t id) {
        chosen.push_back(id);
        return true;
      });
  EXPECT_EQ(chosen, expected);
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenModel, ::testing::ValuesIn(case_names("models")), test_name);

}  // namespace
}  // namespace rankine::test

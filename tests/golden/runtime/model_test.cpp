#include <algorithm>
#include <cmath>

#include "cases.h"
#include "checkpoint/hf_names.h"

// Logits, losses, gradients, AdamW runs and greedy continuations of an independent implementation,
// in f32, within the tolerances its README suggests.
namespace rankine::test {
namespace {

struct Batches {
  int64_t steps = 0, batch = 0, tokens = 0;
  std::vector<std::vector<int32_t>> ids, targets;  // per step
};

class GoldenModel : public GoldenCase {
 protected:
  bool open() {
    if (!open_case("models")) return false;
    file.emplace(folder / "golden.safetensors");
    const SafetensorsEntry* entry = file->find("tokens");
    batches.steps = entry->shape[0];
    batches.batch = entry->shape[1];
    batches.tokens = entry->shape[2] - 1;
    const std::vector<int64_t> tokens = read_raw<int64_t>(*file, "tokens");
    auto at = tokens.begin();
    for (int64_t s = 0; s < batches.steps; ++s) {
      std::vector<int32_t>&ids = batches.ids.emplace_back(), &next = batches.targets.emplace_back();
      for (int64_t b = 0; b < batches.batch; ++b, ++at)
        for (int64_t t = 0; t < batches.tokens; ++t, ++at) {
          ids.push_back(static_cast<int32_t>(*at));
          next.push_back(static_cast<int32_t>(at[1]));
        }
    }
    return true;
  }

  MicroShape shape() const { return {batches.batch, batches.tokens}; }
  // Tied models have logits up to 21, so their rounding is larger.
  double logit_tolerance() const { return config.tied ? 1e-4 : 5e-5; }

  OptimizerOptions optimizer(double clip) const {
    const Json& adamw = golden["adamw"];
    OptimizerOptions o;
    o.beta1 = adamw["betas"][0];
    o.beta2 = adamw["betas"][1];
    o.epsilon = adamw["eps"];
    o.weight_decay = adamw["weight_decay"];
    o.clip_grad = clip;
    return o;
  }

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
      check_parameters(training.engine.store().weights(), *training.ops, expected["final_params"]);
  }

  // One tensor as its official name and orientation want it.
  std::vector<float> assembled(const HfTensor& hf, std::span<const NamedTensor> tensors, Ops& ops) {
    std::vector<float> out(static_cast<size_t>(hf.shape.elements()));
    for (const HfPart& part : hf.parts) {
      const auto found = std::find_if(tensors.begin(), tensors.end(),
                                      [&](const NamedTensor& t) { return t.name == part.name; });
      const std::vector<float> values = host_copy(ops, found->data);
      const int64_t rows = part.shape[0], columns = part.shape.elements() / rows;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) {
          const int64_t row = part.first_row + r;
          const int64_t place = hf.transposed ? c * hf.outputs() + row : row * columns + c;
          out[static_cast<size_t>(place)] = values[static_cast<size_t>(r * columns + c)];
        }
    }
    return out;
  }

  void check_parameters(const std::vector<NamedTensor>& weights, Ops& ops, const Json& expected) {
    for (const HfTensor& hf : hf_tensors(config)) {
      ASSERT_TRUE(expected.contains(hf.name)) << hf.name;
      const Json& e = expected[hf.name];
      const std::vector<float> values = assembled(hf, weights, ops);
      double squares = 0;
      for (const float v : values) squares += static_cast<double>(v) * static_cast<double>(v);
      EXPECT_NEAR(std::sqrt(squares), e["norm"].get<double>(),
                  1e-4 * e["norm"].get<double>() + 1e-4)
          << hf.name;
      const double noise = 4 * e["noise_maxabs"].get<double>() + 2e-5;
      for (size_t i = 0; i < e["first"].size(); ++i)
        EXPECT_NEAR(values[i], e["first"][i].get<double>(), noise) << hf.name << " " << i;
      const size_t last = e["last"].size();
      for (size_t i = 0; i < last; ++i)
        EXPECT_NEAR(values[values.size() - last + i], e["last"][i].get<double>(), noise) << hf.name;
    }
  }

  std::optional<SafetensorsFile> file;
  Batches batches;
};

TEST_P(GoldenModel, BothGenerationsOfConfigsAgree) {
  if (!open()) return;
  if (!std::filesystem::exists(folder / "config.v5.json")) GTEST_SKIP() << "no config.v5.json";
  EXPECT_EQ(read_hf_config(folder / "config.v5.json"), config);
}

TEST_P(GoldenModel, Logits) {
  if (!open()) return;
  const auto ops = make_cpu_ops(2);
  Engine engine(*ops, config,
                {.shape = shape(),
                 .compute = DType::f32,
                 .purpose = Purpose::inference,
                 .positions = batches.tokens});
  engine.allocate();
  load(engine);
  const Tensor all = engine.executor().logits(batches.ids[0], shape(), 0, shape().rows());
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
  const std::vector<NamedTensor> gradients = training.engine.store().gradients();
  for (const HfTensor& hf : hf_tensors(config)) {
    const std::vector<float> expected = read_raw<float>(*file, "grad." + hf.name);
    EXPECT_LE(largest_difference(assembled(hf, gradients, *training.ops), expected),
              1e-4 * largest(expected) + 1e-6)
        << hf.name;
  }
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
  const auto ops = make_cpu_ops(2);
  ModelConfig endless = config;  // the recorded continuation does not stop at an end token
  endless.eos = -1;
  endless.more_eos.clear();
  Engine engine(*ops, endless, generation_setup(DType::f32, positions));
  engine.allocate();
  load(engine);
  std::vector<int32_t> chosen;
  Generator(engine, {.temperature = 0})
      .run(prompt, static_cast<int64_t>(expected.size()), [&](int32_t id) {
        chosen.push_back(id);
        return true;
      });
  EXPECT_EQ(chosen, expected);
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenModel, ::testing::ValuesIn(case_names("models")), test_name);

}  // namespace
}  // namespace rankine::test

#include "support/reference_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "checkpoint/hf_config.h"
#include "checkpoint/hf_model.h"
#include "inference/evaluator.h"
#include "support/temporary_folder.h"
#include "support/training.h"

// Training, evaluation and generation of one folder against plain double precision: one loss and
// one continuation of one text, whatever the family, the layout of the files and the windows.
namespace rankine::test {
namespace {

struct Found {
  std::string name;
  HfModel model;
};

void PrintTo(const Found& found, std::ostream* out) {
  *out << found.name;
}

std::vector<Found> found_models() {
  std::vector<Found> out;
  for (const std::string family : {"llama", "mistral", "qwen2", "qwen3", "gpt2"})
    for (const bool tied : {false, true})
      out.push_back({family + (tied ? "_tied" : ""),
                     hf_model(family, {.positions = 64, .tied = tied, .seed = tied ? 5U : 6U})});
  HfModel window = hf_model("mistral", {.positions = 64});
  window.config["sliding_window"] = 4;
  out.push_back({"mistral_window", window});
  window = hf_model("qwen2", {.positions = 64});
  window.config.update({{"use_sliding_window", true}, {"sliding_window", 5}});
  window.config["max_window_layers"] = 0;
  out.push_back({"qwen2_window", window});
  HfModel silent = hf_model("llama", {.positions = 64});
  silent.config.erase("tie_word_embeddings");
  out.push_back({"llama_silent_of_its_head", silent});
  return out;
}

class ReferenceTest : public ::testing::TestWithParam<Found> {
 protected:
  const HfModel& model() const { return GetParam().model; }
  // An engine with the folder's weights.
  Engine& open(const ExecutorSetup& setup, const HfFolderOptions& options = {}) {
    write_hf_folder(folder / "m", model(), options);
    config = read_hf_config(folder / "m" / "config.json");
    engine = std::make_unique<Engine>(*ops, config, setup);
    engine->allocate();
    const auto warnings = import_hf(folder / "m", config, engine->store().weights(), *ops);
    EXPECT_TRUE(warnings.empty());
    engine->store().refresh_compute();
    return *engine;
  }
  std::vector<int32_t> text(size_t length) const { return random_ids(length, 64, length); }
  double evaluated(Engine& with, const std::vector<int32_t>& ids, int64_t context) const {
    Evaluator evaluator(with, {1, context, context});
    evaluator.add(ids);
    return evaluator.finish()[0].loss;
  }

  TemporaryFolder folder;
  std::unique_ptr<Ops> ops = make_cpu_ops(1);
  ModelConfig config;
  std::unique_ptr<Engine> engine;
};

TEST_P(ReferenceTest, EvaluationIsTheFormula) {
  const std::vector<int32_t> ids = text(40);
  const double expected = ReferenceModel(model()).loss_sum(ids);
  Engine& with = open(evaluation_setup(DType::f32, {1, 64, 64}));
  EXPECT_NEAR(evaluated(with, ids, 64), expected, 2e-5 * 39);
}

TEST_P(ReferenceTest, FilesMayBeOfAnyDtypeAndNumber) {
  const std::vector<int32_t> ids = text(20);
  double first = 0;
  const std::vector<std::pair<std::string, int>> layouts{
      {"F32", 1}, {"BF16", 3}, {"F16", 1}, {"F64", 2}};
  for (const auto& [dtype, shards] : layouts) {
    std::filesystem::remove_all(folder / "m");
    Engine& with =
        open(evaluation_setup(DType::f32, {1, 32, 32}), {.dtype = dtype, .shards = shards});
    const double loss = evaluated(with, ids, 32);
    if (first == 0) first = loss;
    EXPECT_EQ(loss, first) << dtype << " in " << shards << " files: their values are the same";
  }
}

// A step with learning rate 0 tells the loss of two sequences; some targets count for nothing.
TEST_P(ReferenceTest, ATrainingStepHasTheLossOfEvaluation) {
  constexpr MicroShape shape{2, 20};
  const ReferenceModel reference(model());
  std::vector<int32_t> ids, targets;
  double sum = 0;
  int64_t counted = 0;
  for (const size_t length : {21, 8}) {
    const std::vector<int32_t> row = text(length);
    const std::vector<double> losses = reference.losses(row);
    for (size_t t = 0; t < 20; ++t) {
      const bool counts = t + 1 < length && t % 3 != 1;
      ids.push_back(t < length ? row[t] : 0);
      targets.push_back(counts ? row[t + 1] : -1);
      if (counts) sum += losses[t];
      counted += counts ? 1 : 0;
    }
  }
  const Program program = accumulation_program(1);
  write_hf_folder(folder / "m", model());
  config = read_hf_config(folder / "m" / "config.json");
  Engine training(*ops, config,
                  {.shape = shape,
                   .compute = DType::f32,
                   .purpose = Purpose::training,
                   .positions = shape.tokens},
                  {.schedule = one_stage(program)});
  training.allocate();
  import_hf(folder / "m", config, training.store().weights(), *ops);
  training.store().refresh_compute();
  Trainer trainer(training, {{}, 1, 0});
  const StepReport report = trainer.step(1, 0.0, ids, targets);
  EXPECT_EQ(report.tokens, counted);
  EXPECT_NEAR(report.loss, sum / static_cast<double>(counted), 2e-5);
  // As a validation in the course of training has it.
  EXPECT_NEAR(training.executor().evaluate(ids, targets, shape, {}), sum, 2e-5 * 40);
}

// Token by token over caches, far beyond a window, against all computed anew.
TEST_P(ReferenceTest, GenerationFollowsTheLogits) {
  const ReferenceModel reference(model());
  std::vector<int32_t> ids = text(7);
  Engine& with = open(generation_setup(DType::f32, 40));
  Generator generator(with, {.temperature = 0}, {});
  const std::span<const float> row = generator.append(ids);
  const std::vector<double> exact = reference.logits(ids).back();
  for (size_t v = 0; v < exact.size(); ++v)
    ASSERT_NEAR(static_cast<double>(row[v]), exact[v], 2e-4 + 1e-5 * std::abs(exact[v])) << v;

  std::vector<int32_t> written;
  Generator fresh(with, {.temperature = 0}, {});
  fresh.run(
      std::vector<TextRequest>{{ids, 16, 0}},
      [&](size_t, int32_t id) {
        written.push_back(id);
        return true;
      },
      [](size_t, TextEnd) {});
  ASSERT_EQ(written.size(), 16U);
  for (const int32_t id : written) {
    const std::vector<double> logits = reference.logits(ids).back();
    const double best = *std::ranges::max_element(logits);
    ASSERT_NEAR(logits[static_cast<size_t>(id)], best, 1e-3) << "token " << ids.size();
    ids.push_back(id);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ReferenceTest, ::testing::ValuesIn(found_models()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace rankine::test

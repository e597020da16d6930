#include "training_run.h"

// What happens to a model after training: sampling, export, import, inspection, fine-tuning.
namespace rankine::test {
namespace {

class TrainedModel : public TrainingRun {
 protected:
  void SetUp() override {
    TrainingRun::SetUp();
    const Finished done = run(train({"--steps", "80", "--output", at("run")}));
    ASSERT_EQ(done.code, 0) << done.err;
  }
};

TEST_F(TrainedModel, SamplesAreRepeatableAndStartWithThePrompt) {
  const std::vector<std::string> words{"generate", "--model",    at("run"),
                                       "--prompt", "The engine", "--max-tokens",
                                       "40",       "--seed",     "3"};
  const Finished a = run(words), b = run(words);
  ASSERT_EQ(a.code, 0) << a.err;
  EXPECT_EQ(a.out, b.out);
  EXPECT_TRUE(a.out.starts_with("The engine")) << a.out;
  EXPECT_GT(a.out.size(), 30u);
}

TEST_F(TrainedModel, ExportImportExportIsByteIdentical) {
  for (const std::string dtype : {"f32", "bf16", "f16"}) {
    const std::string hf = at("hf-" + dtype), back = at("back-" + dtype),
                      again = at("hf2-" + dtype);
    ASSERT_EQ(run({"convert", "--from", at("run"), "--to", hf, "--dtype", dtype}).code, 0);
    ASSERT_EQ(run({"convert", "--from", hf, "--to", back, "--layout", "checkpoint"}).code, 0);
    ASSERT_EQ(run({"convert", "--from", back, "--to", again, "--dtype", dtype}).code, 0);
    size_t files = 0;
    for (const auto& entry : fs::directory_iterator(hf)) {
      EXPECT_EQ(read_text(entry.path()), read_text(fs::path(again) / entry.path().filename()))
          << entry.path();
      ++files;
    }
    EXPECT_GE(files, 4u) << "config, generation config, weights, tokenizer";
  }
}

TEST_F(TrainedModel, TheExportGivesTheSameText) {
  ASSERT_EQ(run({"convert", "--from", at("run"), "--to", at("hf"), "--dtype", "f32"}).code, 0);
  const auto text = [&](const std::string& model) {
    return run({"generate", "--model", model, "--prompt", "Every", "--temperature", "0",
                "--max-tokens", "30"})
        .out;
  };
  EXPECT_EQ(text(at("hf")), text(at("run")));
}

TEST_F(TrainedModel, InspectShowsRunsAsTextAndJson) {
  const Finished text = run({"inspect", at("run")});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("step 80"), std::string::npos) << text.out;
  const Finished json = run({"inspect", at("run"), "--json"});
  ASSERT_EQ(json.code, 0) << json.err;
  const Json parsed = Json::parse(json.out);
  EXPECT_EQ(parsed["checkpoint"]["step"], 80);
  EXPECT_EQ(parsed["run"]["last"]["step"], 80);
  EXPECT_EQ(parsed["config"]["model_type"], "llama");
}

TEST_F(TrainedModel, FineTuningStartsWhereTheModelIs) {
  const double trained = metrics(home() / "run").back()["loss"];
  ASSERT_EQ(run({"convert", "--from", at("run"), "--to", at("hf"), "--dtype", "f32"}).code, 0);
  for (const std::string from : {"run", "hf"}) {
    const Finished done =
        run({"train", "--data", at("corpus.txt"), "--model", at(from), "--seq-length", "32",
             "--steps", "3", "--precision", "f32", "--output", at("tuned-" + from)});
    ASSERT_EQ(done.code, 0) << done.err;
    EXPECT_LT(metrics(home() / ("tuned-" + from))[0]["loss"].get<double>(), 1.3 * trained + 0.2);
  }
  EXPECT_EQ(numbers(home() / "tuned-run"), numbers(home() / "tuned-hf"));
}

TEST_F(TrainedModel, OneStepOfBenchGivesItsFigures) {
  const Finished done =
      run({"bench", "--model", at("run"), "--seq-length", "32", "--micro-batch-size", "2",
           "--steps", "1", "--precision", "f32,bf16", "--json", at("bench.json")});
  ASSERT_EQ(done.code, 0) << done.err;
  const Json json = Json::parse(read_text(at("bench.json")));
  for (const char* precision : {"f32", "bf16"})
    for (const char* key : {"seconds", "tokens_per_second", "mfu", "peak_bytes"})
      EXPECT_GT(json["train"][precision][key].get<double>(), 0) << precision << " " << key;
}

}  // namespace
}  // namespace rankine::test

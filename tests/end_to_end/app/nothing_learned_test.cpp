#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "tensor/dtype.h"
#include "training_run.h"

// What would be learned from nothing or computed with what is no number: told, not passed over.
namespace rankine::test {
namespace {

class NothingLearned : public TrainingRun {
 protected:
  // Samples of a long prompt, which --seq-length 32 cuts before the reply, and of a short one.
  void write_samples(const char* name, int count, int every_short) {
    std::string lines;
    for (int i = 0; i < count; ++i)
      lines += Json{{"prompt", std::string(every_short > 0 && i % every_short == 0 ? 5 : 200, 'p')},
                    {"response", "yes"}}
                   .dump() +
               "\n";
    write_text_atomically(home() / name, lines);
  }
  std::vector<std::string> train_on(const std::string& data, std::vector<std::string> more) {
    more.insert(more.begin(), {"--data", data});
    auto words = train(more);
    words.erase(words.begin() + 1, words.begin() + 3);  // the corpus
    return words;
  }
  void expect_refused(const std::vector<std::string>& words, int code, const std::string& says) {
    const Finished done = run(words);
    EXPECT_EQ(done.code, code) << says << "\n" << done.err;
    EXPECT_NE(done.err.find(says), std::string::npos) << says << "\n" << done.err;
  }
  // Writes a value into the weights of a Hugging Face folder, in its first tensor of that name.
  static void put(const fs::path& weights, const std::string& tensor, uint64_t index, float value) {
    std::string bytes = read_text(weights);
    uint64_t header = 0;
    std::memcpy(&header, bytes.data(), 8);
    const Json entry = Json::parse(bytes.substr(8, header))[tensor];
    const size_t at = 8 + header + entry["data_offsets"][0].get<uint64_t>();
    const std::string dtype = entry["dtype"];
    const auto write = [&](auto x) {
      std::memcpy(bytes.data() + at + index * sizeof(x), &x, sizeof(x));
    };
    if (dtype == "F32") write(value);
    if (dtype == "BF16") write(from_float<Bf16>(value));
    if (dtype == "F16") write(from_float<F16>(value));
    write_text_atomically(weights, bytes);
  }
};

TEST_F(NothingLearned, WhenEveryReplyIsCutOffNothingIsBegun) {
  write_samples("long.jsonl", 16, 0);
  expect_refused(train_on(at("long.jsonl"),
                          {"--data-format", "instructions", "--steps", "3", "--output", at("run")}),
                 4,
                 "none of the 16 samples of '" + at("long.jsonl") +
                     "' has a token to learn within --seq-length 32: their replies begin behind "
                     "it; give a --seq-length of at least 200");
  EXPECT_FALSE(fs::exists(home() / "run"));
}

TEST_F(NothingLearned, SamplesWithoutATargetAreDroppedAndCounted) {
  write_samples("mixed.jsonl", 90, 3);
  const Finished done = run(train_on(
      at("mixed.jsonl"), {"--data-format", "instructions", "--steps", "3", "--output", at("run"),
                          "--validation-fraction", "0.1", "--eval-interval", "1"}));
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_NE(done.err.find("60 of 90 samples are dropped: their replies begin behind --seq-length "
                          "32"),
            std::string::npos)
      << done.err;
  for (const Json& line : metrics(home() / "run")) {
    EXPECT_GT(line["tokens"].get<int64_t>(), 0);
    EXPECT_GT(line["loss"].get<double>(), 1);
    EXPECT_GT(line["validation_loss"].get<double>(), 1);
  }
}

TEST_F(NothingLearned, WeightsThatAreNotFiniteAreNamedWhereverTheyComeIn) {
  ASSERT_EQ(run(train({"--steps", "2", "--output", at("run")})).code, 0);
  for (const char* dtype : {"f32", "bf16", "f16"}) {
    const std::string hf = at(std::string("hf-") + dtype);
    ASSERT_EQ(run({"convert", "--from", at("run"), "--to", hf, "--dtype", dtype}).code, 0);
    // [32, 80]: row 3, column 5.
    put(fs::path(hf) / "model.safetensors", "model.layers.1.mlp.down_proj.weight", 3 * 80 + 5,
        dtype[0] == 'f' ? std::nanf("") : INFINITY);
    const std::string says = fmt::format(
        "'{}': 1 value of the weights is not finite, it is {}, element [3, 5] of "
        "'model.layers.1.mlp.down_proj.weight'",
        hf, dtype[0] == 'f' ? "nan" : "inf");
    expect_refused({"convert", "--from", hf, "--to", at("copy")}, 4, says);
    EXPECT_FALSE(fs::exists(home() / "copy"));
    if (dtype[1] != '3') continue;
    expect_refused({"eval", "--model", hf, "--data", at("corpus.txt"), "--context", "32"}, 4, says);
    expect_refused({"generate", "--model", hf, "--prompt", "x", "--max-tokens", "3"}, 4, says);
    expect_refused({"train", "--model", hf, "--data", at("corpus.txt"), "--seq-length", "32",
                    "--steps", "2", "--output", at("tuned")},
                   4, says);
  }
}

TEST_F(NothingLearned, ARunThatDivergesEndsAndKeepsWhatIsGood) {
  // Weights of some thousands: finite, but too large for what is computed with them in f16.
  const std::vector<std::string> words{"--precision",
                                       "f16",
                                       "--lr",
                                       "1e3",
                                       "--min-lr",
                                       "1e3",
                                       "--clip-grad",
                                       "0",
                                       "--save-interval",
                                       "1",
                                       "--keep-checkpoints",
                                       "1",
                                       "--steps",
                                       "40",
                                       "--output",
                                       at("run")};
  auto diverging = words;
  diverging.insert(diverging.end(), {"--max-skipped-steps", "3"});
  const Finished done = run(train(diverging));
  EXPECT_EQ(done.code, 4) << done.err;
  for (const char* says : {"the gradient was not finite in 3 steps in a row (--max-skipped-steps)",
                           "it begins in block ", "go on from '"})
    EXPECT_NE(done.err.find(says), std::string::npos) << done.err;
  // What went before the trouble is still there, and every checkpoint can be read.
  const std::vector<Json> lines = metrics(home() / "run");
  const auto last = lines.back()["step"].get<int64_t>();
  EXPECT_TRUE(lines.back()["loss"].is_null());
  const std::string learned = fmt::format("step-{:08}", last - 3);
  EXPECT_TRUE(fs::exists(home() / "run" / learned)) << learned;
  for (const auto& entry : fs::directory_iterator(home() / "run"))
    if (entry.is_directory()) {
      const Finished read =
          run({"convert", "--from", entry.path().string(), "--to", at("read"), "--dtype", "f32"});
      EXPECT_EQ(read.code, 0) << read.err;
    }
}

TEST_F(NothingLearned, StatesThatAreNotFiniteAreNotSaved) {
  ASSERT_EQ(run(train({"--steps", "1", "--output", at("run")})).code, 0);
  expect_refused(train({"--resume", "--output", at("run"), "--steps", "2", "--lr", "1e38",
                        "--min-lr", "1e38", "--keep-checkpoints", "1"}),
                 4, "values of the weights are not finite");
  EXPECT_TRUE(fs::exists(home() / "run/step-00000001/manifest.json"));
  EXPECT_FALSE(fs::exists(home() / "run/step-00000002"));
}

TEST_F(NothingLearned, EvaluationOfWhatOverflowsFails) {
  ASSERT_EQ(run(train({"--steps", "1", "--output", at("run")})).code, 0);
  ASSERT_EQ(run({"convert", "--from", at("run"), "--to", at("hf"), "--dtype", "f32"}).code, 0);
  for (const uint64_t i : {0, 1, 2, 3})
    put(home() / "hf/model.safetensors", "model.layers.1.input_layernorm.weight", i, 3e38F);
  expect_refused(
      {"eval", "--model", at("hf"), "--data", at("corpus.txt"), "--context", "32", "--json"}, 4,
      "document 0 of '" + at("corpus.txt") + "' is not finite: it begins in block layers.1");
}

TEST_F(NothingLearned, EvaluationOfNothingFails) {
  ASSERT_EQ(run(train({"--steps", "1", "--output", at("run")})).code, 0);
  write_text_atomically(home() / "empty.jsonl", "{\"text\": \"\"}\n");
  expect_refused({"eval", "--model", at("run"), "--data", at("empty.jsonl"), "--ranks", "2"}, 4,
                 "the data has no token to predict");
}

TEST_F(NothingLearned, TheRateFallsToATenthOfThePeak) {
  auto words = train({"--steps", "4", "--output", at("run")});
  words.insert(words.end(), {"--lr", "1e-5"});
  ASSERT_EQ(run(words).code, 0);
  double before = 1e-5;
  for (const Json& line : metrics(home() / "run")) {
    EXPECT_LE(line["lr"].get<double>(), before);
    before = line["lr"];
  }
  EXPECT_DOUBLE_EQ(before, 1e-6);
  expect_refused({"train", "--resume", "--output", at("run"), "--steps", "3"}, 2,
                 "--steps 3: the run in '" + at("run") + "' is at step 4 already");
  const Finished prolonged = run({"train", "--resume", "--output", at("run"), "--steps", "6"});
  EXPECT_EQ(prolonged.code, 0) << prolonged.err;
  EXPECT_NE(prolonged.err.find("step 4 was trained with 1.00e-06 (of 4 steps), step 5 is with "
                               "1.60e-06 (of 6 steps)"),
            std::string::npos)
      << prolonged.err;
}

TEST_F(NothingLearned, ContradictionsAndWhatHasNoEffectAreRefused) {
  const auto refuse = [&](const std::vector<std::string>& more, const std::string& says) {
    auto words = train({"--output", at("run"), "--steps", "9"});
    words.insert(words.end(), more.begin(), more.end());
    expect_refused(words, 2, says);
  };
  refuse({"--lr", "1e-5", "--min-lr", "3e-5"}, "--min-lr 3e-05 is above the peak, --lr 1e-05");
  refuse({"--warmup-steps", "9"}, "--warmup-steps 9 of --steps 9");
  refuse({"--delayed-update", "10", "--offload-optimizer", "host"}, "behind the last of --steps 9");
  refuse({"--validation-fraction", "0", "--eval-batches", "2"}, "--eval-batches has no effect");
  refuse({"--chat-template", "chatml"}, "--chat-template has no effect");
  refuse({"--data-cache", at("cache")}, "--data-cache has no effect");
  expect_refused(train_on(at("corpus.txt"), {"--data", at("shape/../corpus.txt")}), 2,
                 "are the same file");
  EXPECT_FALSE(fs::exists(home() / "run"));
  ASSERT_EQ(run({"tokenize", "--data", at("corpus.txt"), "--tokenizer", "bytes", "--output",
                 at("tokens")})
                .code,
            0);
  for (const char* option : {"--text-field", "--prompt-field", "--end-token", "--bad-lines"})
    expect_refused(train_on(at("tokens"), {option, "0.5"}), 2,
                   fmt::format("{} has no effect on the data, since '{}' is a token file", option,
                               at("tokens")));
  expect_refused({"tokenize", "--data", at("corpus.txt"), "--tokenizer", "bytes", "--output",
                  at("more"), "--text-field", "body"},
                 2, "--text-field has no effect");
  expect_refused(
      {"convert", "--from", at("run"), "--to", at("x"), "--layout", "checkpoint", "--dtype", "f16"},
      2, "--dtype has no effect with --layout checkpoint");
  expect_refused({"plan", "--model", "tiny", "--tier-bandwidth", "1GiB"}, 2,
                 "--tier-bandwidth has no effect without --rank-flops");
}

}  // namespace
}  // namespace rankine::test

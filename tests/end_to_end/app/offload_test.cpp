#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "training_run.h"

// Memory options of the program: recomputation, offloading, limits.
namespace rankine::test {
namespace {

class Offloading : public TrainingRun {
 protected:
  std::vector<std::string> offloaded(const std::string& output, const std::string& steps,
                                     const std::vector<std::string>& more = {}) {
    auto words = train({"--output", at(output), "--steps", steps, "--offload-optimizer", "disk",
                        "--offload-dir", at("tier")});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void make_deep() {
    auto shape = Json::parse(read_text(home() / "shape" / "config.json"));
    shape["num_hidden_layers"] = 10;
    write_text_atomically(home() / "shape" / "config.json", shape.dump());
  }
  static std::vector<fs::path> files_in(const fs::path& folder) {
    std::vector<fs::path> out;
    if (fs::exists(folder))
      for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path());
    return out;
  }
};

TEST_F(Offloading, RunsAndResumesWithTheSameBitsAndLeavesNothing) {
  ASSERT_EQ(run(train({"--output", at("kept"), "--steps", "6"})).code, 0);
  ASSERT_EQ(run(train({"--output", at("host"), "--steps", "6", "--offload-optimizer", "host",
                       "--recompute", "full"}))
                .code,
            0);
  ASSERT_EQ(run(offloaded("disk", "3")).code, 0);
  EXPECT_TRUE(files_in(home() / "tier").empty());
  const Finished resumed = run({"train", "--resume", "--output", at("disk"), "--steps", "6"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("offload   optimizer states"), std::string::npos) << resumed.err;
  EXPECT_TRUE(files_in(home() / "tier").empty());
  EXPECT_EQ(numbers(home() / "host"), numbers(home() / "kept"));
  // The learning rate knows the number of steps, so that a shorter run's first steps are its own.
  EXPECT_EQ(numbers(home() / "disk").size(), 6u);
  ASSERT_EQ(run(offloaded("straight", "6")).code, 0);
  EXPECT_EQ(numbers(home() / "straight"), numbers(home() / "kept"));
}

// Each of weights, momentum and variance is read and written once, and so are gradients, whose norm
// is known without reading them.
TEST_F(Offloading, AStepMovesWhatItMustAndNoMore) {
  const auto disk_of = [&](const std::string& name, const std::vector<std::string>& more) {
    const Finished done = run(offloaded(name, "2", more));
    EXPECT_EQ(done.code, 0) << done.err;
    return metrics(home() / name).at(1)["tiers"]["disk"];
  };
  const Json once = disk_of("once", {}), twice = disk_of("twice", {"--accumulation", "2"});
  const auto read = once["bytes_read"].get<int64_t>(),
             written = once["bytes_written"].get<int64_t>();
  EXPECT_GT(written, 0);
  EXPECT_EQ(read, written);
  EXPECT_EQ(read % 4, 0);
  // A further micro-batch's gradients are added to the sums there.
  EXPECT_EQ(twice["bytes_read"].get<int64_t>(), read + read / 4);
  EXPECT_EQ(twice["bytes_written"].get<int64_t>(), written + written / 4);
  EXPECT_GE(once["exposed_seconds"].get<double>(), 0);
  const Json host = metrics(home() / "once").at(1)["tiers"]["host"];
  EXPECT_EQ(host["bytes_read"].get<int64_t>() + host["bytes_written"].get<int64_t>(), 0);
}

TEST_F(Offloading, EverythingInAnotherTierIsTheSameRun) {
  ASSERT_EQ(run(train({"--output", at("kept"), "--steps", "6", "--eval-interval", "3"})).code, 0);
  for (const std::string tier : {"host", "disk"}) {
    auto words = train({"--output",
                        at(tier),
                        "--steps",
                        "6",
                        "--eval-interval",
                        "3",
                        "--offload-optimizer",
                        tier,
                        "--offload-parameters",
                        tier,
                        "--offload-activations",
                        tier,
                        "--ranks",
                        "2",
                        "--zero",
                        "3",
                        "--micro-batch-size",
                        "2",
                        "--save-interval",
                        "3"});
    if (tier == "disk") words.insert(words.end(), {"--offload-dir", at("tier")});
    const Finished done = run(words);
    ASSERT_EQ(done.code, 0) << done.err;
    for (const char* what : {"optimizer states", "parameters", "activations"})
      EXPECT_NE(done.err.find(std::string("offload   ") + what), std::string::npos) << done.err;
    EXPECT_TRUE(files_in(home() / "tier").empty());
    const auto here = metrics(home() / tier), there = metrics(home() / "kept");
    ASSERT_EQ(here.size(), there.size());
    for (size_t i = 0; i < here.size(); ++i)
      EXPECT_NEAR(here[i]["loss"].get<double>(), there[i]["loss"].get<double>(), 2e-4) << i;
  }
  EXPECT_EQ(numbers(home() / "disk"), numbers(home() / "host"));
}

// Killed behind its first checkpoint, in which the last update lags, a run goes on as if nothing
// had been: also on other ranks.
TEST_F(Offloading, ADelayedRunIsResumedWithTheSameBits) {
  const auto delayed = [&](const std::string& output, const std::string& tier) {
    auto words = train({"--output",
                        at(output),
                        "--steps",
                        "6",
                        "--save-interval",
                        "3",
                        "--keep-checkpoints",
                        "0",
                        "--eval-interval",
                        "2",
                        "--delayed-update",
                        "2",
                        "--offload-optimizer",
                        tier,
                        "--strict",
                        "--micro-batch-size",
                        "2",
                        "--global-batch-size",
                        "4",
                        "--precision",
                        "bf16"});
    if (tier == "disk")
      words.insert(words.end(), {"--offload-dir", at("tier"), "--offload-parameters", "disk"});
    return words;
  };
  for (const std::string tier : {"host", "disk"}) {
    const Finished done = run(delayed(tier, tier));
    ASSERT_EQ(done.code, 0) << done.err;
    fs::copy(home() / tier, home() / (tier + "-resumed"), fs::copy_options::recursive);
    fs::remove_all(home() / (tier + "-resumed") / "step-00000006");
    const Finished resumed = run({"train", "--resume", "--output", at(tier + "-resumed"), "--ranks",
                                  "2", "--zero", tier == "host" ? "1" : "3"});
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_NE(resumed.err.find("resumed   from step 3"), std::string::npos) << resumed.err;
    EXPECT_EQ(numbers(home() / (tier + "-resumed")), numbers(home() / tier));
  }
  EXPECT_EQ(numbers(home() / "host"), numbers(home() / "disk"));
  auto undelayed = delayed("undelayed", "host");
  undelayed.insert(undelayed.end(), {"--delayed-update", "0"});
  ASSERT_EQ(run(undelayed).code, 0);
  EXPECT_NE(numbers(home() / "undelayed"), numbers(home() / "host"));
}

TEST_F(Offloading, WrongRequestsAreRefused) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> refusals = {
      {{"--offload-optimizer", "disk"}, "--offload-dir"},
      {{"--offload-parameters", "disk"}, "--offload-dir"},
      {{"--offload-activations", "disk"}, "--offload-dir"},
      {{"--offload-dir", at("tier")}, "--offload-optimizer"},
      {{"--delayed-update", "2"}, "--offload-optimizer host or disk"},
      {{"--delayed-update", "2", "--offload-parameters", "host"}, "needs --offload-optimizer"},
      {{"--recompute-layers", "1"}, "--recompute"},
      {{"--gather-window", "3"}, "--zero 3 or --offload-parameters"},
      {{"--offload-prefetch", "2", "--offload-optimizer", "host"}, "--offload-parameters or"},
      {{"--offload-optimizer", "tape"}, "tape"}};
  for (const auto& [more, says] : refusals) {
    auto words = train({"--output", at("refused"), "--steps", "1"});
    words.insert(words.end(), more.begin(), more.end());
    const Finished done = run(words);
    EXPECT_EQ(done.code, 2) << says << done.err;
    EXPECT_NE(done.err.find(says), std::string::npos) << done.err;
    EXPECT_FALSE(fs::exists(home() / "refused"));
  }
}

TEST_F(Offloading, ADeviceLimitNamesWhatWouldFit) {
  const Finished full = run(train({"--output", at("full"), "--steps", "1"}));
  ASSERT_EQ(full.code, 0);
  const auto planned = metrics(home() / "full")[0]["memory"]["planned"].get<int64_t>();
  const std::string limit = std::to_string(planned * 9 / 10);
  const Finished refused =
      run(train({"--output", at("small"), "--steps", "1", "--device-memory", limit}));
  EXPECT_EQ(refused.code, 5);
  EXPECT_NE(refused.err.find("device memory"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("it would fit with"), std::string::npos) << refused.err;
  const Finished fits = run(train({"--output", at("fits"), "--steps", "1", "--device-memory", limit,
                                   "--offload-optimizer", "host"}));
  EXPECT_EQ(fits.code, 0) << fits.err;
  EXPECT_EQ(numbers(home() / "fits"), numbers(home() / "full"));
}

// What is far too large fits only with everything elsewhere; the remedy says what that costs.
TEST_F(Offloading, ARemedyNamesAllThatMustLeave) {
  make_deep();
  const std::vector<std::string> all = {
      "--offload-optimizer",   "host", "--offload-parameters", "host",
      "--offload-activations", "host", "--recompute",          "full",
      "--bucket-size",         "0"};
  std::vector<std::string> plan = {
      "plan",         "--model",        at("shape"), "--seq-length", "32", "--precision",
      "f32",          "--accumulation", "4",         "--threads",    "1",  "--json",
      at("plan.json")};
  plan.insert(plan.end(), all.begin(), all.end());
  const Finished planned = run(plan);
  ASSERT_EQ(planned.code, 0) << planned.err;
  const auto bytes =
      Json::parse(read_text(home() / "plan.json"))["zero"][0]["planned_bytes"].get<int64_t>();
  const auto limited = [&](const std::string& output, const std::vector<std::string>& more) {
    auto words = train({"--output", at(output), "--steps", "2", "--global-batch-size", "4",
                        "--device-memory", std::to_string(bytes)});
    for (const char* name : {"--micro-batch-size", "--threads"})
      *(std::ranges::find(words, name) + 1) = "1";
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const Finished refused = run(limited("refused", {"--bucket-size", "0"}));
  EXPECT_EQ(refused.code, 5) << refused.err;
  for (const char* remedy : {"it would fit with", "--recompute full (about ",
                             "--offload-optimizer host (each step copies ",
                             "--offload-parameters host (each step copies "})
    EXPECT_NE(refused.err.find(remedy), std::string::npos) << remedy << refused.err;
  const Finished fits = run(limited("fits", all));
  EXPECT_EQ(fits.code, 0) << fits.err;
}

// Where all memory is limited the disk helps, and what the remedy says it moves is what it moves.
TEST_F(Offloading, AMemoryLimitNamesTheDiskAndWhatItMoves) {
  make_deep();
  const auto least = [&](std::vector<std::string> words) {
    *(std::ranges::find(words, "--micro-batch-size") + 1) = "1";
    words.insert(words.end(), {"--global-batch-size", "2", "--recompute", "full"});
    return words;
  };
  const Finished fits = run(least(offloaded("fits", "2")));
  ASSERT_EQ(fits.code, 0) << fits.err;
  const Json step = metrics(home() / "fits").at(1), disk = step["tiers"]["disk"];
  const Finished refused = run(least(train({"--output", at("refused"), "--steps", "2",
                                            "--memory-limit", step["memory"]["planned"].dump()})));
  EXPECT_EQ(refused.code, 5) << refused.err;
  const auto moved = disk["bytes_read"].get<uint64_t>() + disk["bytes_written"].get<uint64_t>();
  const std::string remedy = fmt::format(
      "it would fit with --micro-batch-size 1 --accumulation 2 --precision f32 --offload-optimizer "
      "disk (each step copies {} between the tiers, ",
      format_bytes(moved));
  EXPECT_NE(refused.err.find(remedy), std::string::npos) << remedy << refused.err;
  EXPECT_NE(refused.err.find("--offload-dir FOLDER"), std::string::npos) << refused.err;
}

TEST_F(Offloading, ATokenizerIsTrainedAndGivesTheTextBack) {
  const Finished trained = run({"tokenizer", "train", "--data", at("corpus.txt"), "--vocabulary",
                                "300", "--output", at("tokenizer")});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Finished ids = run({"tokenizer", "encode", "--tokenizer", at("tokenizer"), "--text",
                            "Every rank holds one share."});
  ASSERT_EQ(ids.code, 0) << ids.err;
  EXPECT_FALSE(ids.out.empty());
  EXPECT_EQ(run({"tokenizer", "encode", "--tokenizer", at("absent"), "--text", "x"}).code, 3);
}

}  // namespace
}  // namespace rankine::test

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

TEST_F(Offloading, LeftOversOfAKilledRunAreRemoved) {
  {
    Command command(home(), offloaded("killed", "1000000"));
    while (command.running() && command.errors().find("| loss") == std::string::npos)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    command.send(SIGKILL);
    command.wait();
  }
  EXPECT_EQ(files_in(home() / "tier").size(), 1u);
  const Finished next = run(offloaded("next", "1"));
  ASSERT_EQ(next.code, 0) << next.err;
  EXPECT_TRUE(files_in(home() / "tier").empty());
}

TEST_F(Offloading, WrongRequestsAreRefused) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> refusals = {
      {{"--offload-optimizer", "disk"}, "--offload-dir"},
      {{"--offload-dir", at("tier")}, "--offload-optimizer disk"},
      {{"--recompute-layers", "1"}, "--recompute"},
      {{"--offload-optimizer", "disk", "--offload-dir", at("tier"), "--strict", "--accumulation",
        "2"},
       "--strict"},
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

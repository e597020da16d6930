#include <algorithm>

#include "training_run.h"

// Wrong input of any kind: one clear line, the exit code of its kind, nothing half-written.
namespace rankine::test {
namespace {

struct Refusal {
  std::vector<std::string> words;
  int code;
  std::string says;
};

class Refusals : public TrainingRun {
 protected:
  void check(const Refusal& refusal) {
    const Finished done = run(refusal.words);
    std::string words;
    for (const std::string& word : refusal.words) words += word + " ";
    EXPECT_EQ(done.code, refusal.code) << words << "\n" << done.err;
    EXPECT_NE(done.err.find(refusal.says), std::string::npos) << words << "\n" << done.err;
    const size_t line = done.err.rfind("\nrankine: ");
    EXPECT_TRUE(line != std::string::npos || done.err.starts_with("rankine: ")) << done.err;
  }
};

TEST_F(Refusals, UsageFaultsAreNamedWithTheNearestLegalThing) {
  check({{"trian"}, 2, "did you mean 'train'"});
  check({{"train"}, 2, "--data is missing"});
  check({{"train", "--dta", "x"}, 2, "--data"});
  check({{"train", "--data", at("corpus.txt"), "--model", "gtp2"}, 2, "'gpt2'"});
  check({{"train", "--data", at("corpus.txt"), "--steps", "-1"}, 2, "steps"});
  check({{"train", "--data", at("corpus.txt"), "--precision", "fp8"}, 2, "bf16"});
  check(
      {{"train", "--data", at("corpus.txt"), "--micro-batch-size", "3", "--global-batch-size", "8"},
       2,
       "--global-batch-size 8"});
  check({{"train", "--data", at("corpus.txt"), "--seq-length", "100000"}, 2, "positions"});
  check({{"train", "--resume", "--data", at("corpus.txt")}, 2, "--output"});
  check({{"generate"}, 2, "--model is missing"});
  check({{"generate", "--model", "gpt2"}, 2, "preset"});
  check({{"convert", "--from", "gpt2", "--to", at("x")}, 2, "preset"});
  check({{"bench", "--precision", "f32,f8"}, 2, "f8"});
  EXPECT_FALSE(fs::exists(home() / "x"));
}

TEST_F(Refusals, AllFaultsOfACommandLineAreReportedTogether) {
  const Finished done = run({"train", "--data", at("corpus.txt"), "--steps", "many", "--lr", "-1",
                             "--precision", "f8", "--seqlength", "4"});
  EXPECT_EQ(done.code, 2);
  for (const char* fault : {"many", "lr", "f8", "seqlength"})
    EXPECT_NE(done.err.find(fault), std::string::npos) << done.err;
}

TEST_F(Refusals, DataFaultsNameTheFile) {
  check({{"train", "--data", at("absent.txt")}, 4, "absent.txt"});
  write_text_atomically(home() / "short.txt", "tiny");
  check({{"train", "--data", at("short.txt")}, 4, "4"});
  write_text_atomically(home() / "wide.txt", std::string("\xFF\xFEh\0i\0", 6));
  check({{"train", "--data", at("wide.txt")}, 4, "UTF-16"});
  check({{"inspect", at("absent")}, 2, "absent"});
  fs::create_directories(home() / "empty");
  check({{"generate", "--model", at("empty"), "--prompt", "x"}, 4, "neither"});
  fs::create_directories(home() / "broken");
  write_text_atomically(home() / "broken/config.json", "{\"model_type\": \"llama\", ");
  check({{"inspect", at("broken")}, 4, "config.json"});
  EXPECT_FALSE(fs::exists("runs")) << "nothing was begun";
}

TEST_F(Refusals, APlanOverTheLimitIsRefusedBeforeAnythingIsWritten) {
  auto words = train({"--output", at("run"), "--memory-limit", "100KiB"});
  check({words, 5, "the limit is 100 KiB"});
  const Finished done = run(words);
  for (const char* part : {"activations", "optimizer states", "no micro-batch size fits"})
    EXPECT_NE(done.err.find(part), std::string::npos) << done.err;
  EXPECT_FALSE(fs::exists(home() / "run"));
}

TEST_F(Refusals, TheSettingsThatARefusalNamesDoFit) {
  const auto with_limit = [&](const std::string& micro, const std::string& accumulation) {
    return run(train({"--output", at("run"), "--memory-limit", "3MiB", "--steps", "1",
                      "--micro-batch-size", micro, "--accumulation", accumulation}));
  };
  const Finished refused = with_limit("64", "1");
  ASSERT_EQ(refused.code, 5) << refused.err;
  const std::string advice = "it would fit with --micro-batch-size ";
  const size_t begin = refused.err.find(advice);
  ASSERT_NE(begin, std::string::npos) << refused.err;
  const int micro = std::stoi(refused.err.substr(begin + advice.size()));
  const Finished done = with_limit(std::to_string(micro), std::to_string(64 / micro));
  EXPECT_EQ(done.code, 0) << done.err;
}

TEST_F(Refusals, ARunIsNeverOverwrittenSilently) {
  ASSERT_EQ(run(train({"--steps", "2", "--output", at("run")})).code, 0);
  const std::string before = read_text(home() / "run/metrics.jsonl");
  check({train({"--steps", "2", "--output", at("run")}), 2, "--resume"});
  EXPECT_EQ(read_text(home() / "run/metrics.jsonl"), before);
  auto other = train({"--resume", "--output", at("run"), "--steps", "4"});
  write_text_atomically(home() / "corpus.txt", corpus_text(21000));
  check({other, 4, "corpus is another one"});
}

TEST_F(Refusals, ADamagedCheckpointIsRefusedByName) {
  ASSERT_EQ(run(train({"--steps", "2", "--output", at("run")})).code, 0);
  const fs::path file = home() / "run/step-00000002/rank-00000.safetensors";
  std::string bytes = read_text(file);
  bytes[bytes.size() - 100] = static_cast<char>(bytes[bytes.size() - 100] ^ 1);
  write_text_atomically(file, bytes);
  check({{"generate", "--model", at("run"), "--prompt", "x", "--max-tokens", "9"},
         4,
         "rank-00000.safetensors"});
  check(
      {{"train", "--resume", "--output", at("run"), "--steps", "3"}, 4, "rank-00000.safetensors"});
}

TEST_F(Refusals, AFullDiskEndsTheRunWithItsReason) {
  check({train({"--steps", "2", "--output", at("run"), "--metrics", "/dev/full"}), 5,
         "No space left"});
}

TEST_F(Refusals, EveryCommandHasHelp) {
  EXPECT_EQ(run({"--help"}).code, 0);
  for (const char* command : {"train", "generate", "convert", "inspect", "bench"}) {
    const Finished done = run({command, "--help"});
    EXPECT_EQ(done.code, 0) << done.err;
    EXPECT_GT(done.out.size(), 200u);
    size_t longest = 0;
    for (size_t begin = 0; begin < done.out.size();) {
      const size_t end = std::min(done.out.find('\n', begin), done.out.size());
      longest = std::max(longest, end - begin);
      begin = end + 1;
    }
    EXPECT_LE(longest, 100u);
  }
}

}  // namespace
}  // namespace rankine::test

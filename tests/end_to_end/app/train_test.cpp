#include <fmt/core.h>

#include <csignal>
#include <fstream>
#include <random>

#include "training_run.h"

// Training, resuming, sampling and exporting as the manual says.
namespace rankine::test {
namespace {

using EndToEnd = TrainingRun;

TEST_F(EndToEnd, TrainsAndTheLossFalls) {
  const Finished done =
      run(train({"--steps", "60", "--output", at("run"), "--eval-interval", "30"}));
  ASSERT_EQ(done.code, 0) << done.err;
  const std::vector<Json> lines = metrics(home() / "run");
  ASSERT_EQ(lines.size(), 60u);
  for (const char* key : {"step", "loss", "grad_norm", "lr", "tokens", "seconds",
                          "tokens_per_second", "mfu", "memory"})
    EXPECT_TRUE(lines[0].contains(key)) << key;
  for (const char* key : {"planned", "arena_peak", "rss"})
    EXPECT_TRUE(lines[0]["memory"].contains(key)) << key;
  EXPECT_EQ(lines[0]["memory"]["planned"], lines[0]["memory"]["arena_peak"]);
  EXPECT_EQ(lines[0]["tokens"], 4 * 32);
  EXPECT_LT(lines[59]["loss"].get<double>(), 0.7 * lines[0]["loss"].get<double>());
  EXPECT_TRUE(lines[29].contains("validation_loss"));
  EXPECT_TRUE(lines[59].contains("validation_loss"));
  EXPECT_FALSE(lines[10].contains("validation_loss"));
}

TEST_F(EndToEnd, ResumedLossesAreThoseOfTheUninterruptedRun) {
  const std::vector<std::string> common{"--steps", "24", "--dropout", "0.1"};
  auto whole = train(common), first = train(common);
  whole.insert(whole.end(), {"--output", at("whole")});
  first.insert(first.end(), {"--output", at("parts"), "--save-interval", "7"});
  ASSERT_EQ(run(whole).code, 0);
  ASSERT_EQ(run(first).code, 0);
  // Back to an earlier checkpoint, as after a crash.
  fs::remove_all(home() / "parts" / "step-00000024");
  const Finished resumed = run({"train", "--resume", "--output", at("parts")});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("step 21"), std::string::npos) << resumed.err;
  EXPECT_EQ(numbers(home() / "parts"), numbers(home() / "whole"));
  EXPECT_EQ(read_text(home() / "parts/step-00000024/rank-00000.safetensors"),
            read_text(home() / "whole/step-00000024/rank-00000.safetensors"));
}

TEST_F(EndToEnd, TheStoredConfigurationRepeatsTheRun) {
  ASSERT_EQ(run(train({"--steps", "5", "--output", at("a")})).code, 0);
  const Finished again = run({"train", "--config", at("a/config.toml"), "--output", at("b")});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(numbers(home() / "b"), numbers(home() / "a"));
}

TEST_F(EndToEnd, AnInterruptSavesAndTheRunGoesOn) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string name = "run" + std::to_string(signal);
    Command command(home(), train({"--steps", "100000", "--output", at(name)}));
    while (command.running() && !fs::exists(home() / name / "metrics.jsonl"))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    command.send(signal);
    const Finished stopped = command.wait();
    ASSERT_EQ(stopped.code, 0) << stopped.err;
    const size_t steps = metrics(home() / name).size();
    ASSERT_GT(steps, 0u);
    const std::string more = std::to_string(steps + 3);
    const Finished resumed = run({"train", "--resume", "--output", at(name), "--steps", more});
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_NE(resumed.err.find("changed   steps"), std::string::npos) << resumed.err;
    EXPECT_EQ(metrics(home() / name).size(), steps + 3);
  }
}

// Steps that the newest complete checkpoint holds, 0 without one.
int64_t saved_steps(const fs::path& run) {
  int64_t newest = 0;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(run, code)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && entry.path().extension() != ".tmp")
      newest = std::max<int64_t>(newest, std::stoll(name.substr(5)));
  }
  return newest;
}

// oneDNN's f32 products on AVX-512 use the heap as a stack, which a signal handler would overwrite.
TEST_F(EndToEnd, ComputingThreadsNeverReceiveSignals) {
  const Start start{.words = {RANKINE_BINARY}, .prepare = {}};
  Command running(home(), train({"--output", at("run"), "--steps", "100000"}), start);
  while (running.running() && !fs::exists(home() / "run" / "metrics.jsonl"))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto mask_of = [](const fs::path& task, const std::string& name) {
    std::ifstream status(task / "status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with(name)) return std::stoull(line.substr(name.size()), nullptr, 16);
    return 0ull;
  };
  const auto bit = [](int signal) { return 1ull << (signal - 1); };
  const auto stops = bit(SIGINT) | bit(SIGTERM) | bit(SIGUSR1);
  int threads = 0, receivers = 0;
  for (const auto& task : fs::directory_iterator(fmt::format("/proc/{}/task", running.process()))) {
    ++threads;
    receivers += (mask_of(task.path(), "SigBlk:") & stops) != stops ? 1 : 0;
    EXPECT_EQ(mask_of(task.path(), "SigCgt:") & stops, 0u) << "nothing is handled on any stack";
  }
  EXPECT_GE(threads, 3);
  EXPECT_EQ(receivers, 1) << "the one that waits for them";
}

// Else threads that share processors with another program wait for each other by the millisecond.
TEST_F(EndToEnd, ThreadsThatWaitSleepSoonUnlessTheUserSaysOtherwise) {
  const auto environment_of = [&](const char* name, const char* value) {
    const Start start{.words = {RANKINE_BINARY}, .prepare = [=] {
                        ::unsetenv("OMP_WAIT_POLICY");
                        ::unsetenv("GOMP_SPINCOUNT");
                        if (name != nullptr) ::setenv(name, value, 1);
                      }};
    Command running(home(), train({"--output", at(value), "--steps", "100000"}), start);
    while (running.running() && !fs::exists(home() / value / "metrics.jsonl"))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::ifstream file(fmt::format("/proc/{}/environ", running.process()));
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_NE(environment_of(nullptr, "plain").find("GOMP_SPINCOUNT=1000"), std::string::npos);
  EXPECT_EQ(environment_of("OMP_WAIT_POLICY", "active").find("GOMP_SPINCOUNT"), std::string::npos);
}

TEST_F(EndToEnd, KilledTwentyTimesItAlwaysContinuesIdentically) {
  const std::vector<std::string> common{"--lr-decay-style", "constant", "--save-interval", "3"};
  std::mt19937 random(20);
  auto first = train(common);
  first.insert(first.end(), {"--steps", "1000000", "--output", at("broken")});
  for (int kill = 0; kill < 20; ++kill) {
    const int64_t before = saved_steps(home() / "broken");
    Command command(home(), before == 0 ? first
                                        : std::vector<std::string>{"train", "--resume", "--output",
                                                                   at("broken")});
    while (command.running() && saved_steps(home() / "broken") == before)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 200000));
    ASSERT_TRUE(command.running()) << "kill " << kill << ": " << command.wait().err;
    command.send(SIGKILL);
    command.wait();
  }
  const std::string steps = std::to_string(saved_steps(home() / "broken") + 2);
  const Finished last = run({"train", "--resume", "--output", at("broken"), "--steps", steps});
  ASSERT_EQ(last.code, 0) << last.err;
  auto whole = train(common);
  whole.insert(whole.end(), {"--steps", steps, "--output", at("whole")});
  ASSERT_EQ(run(whole).code, 0);
  EXPECT_EQ(numbers(home() / "broken"), numbers(home() / "whole"));
}

}  // namespace
}  // namespace rankine::test

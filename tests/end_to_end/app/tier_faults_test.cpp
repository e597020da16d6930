#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "training_run.h"

// A tier's file that cannot be made, written or read ends the run with its path and the reason.
namespace rankine::test {
namespace {

// What lies on disk, in a file without a name.
class TierFaults : public TrainingRun, public ::testing::WithParamInterface<const char*> {
 protected:
  // From now on it may write half of its tier file.
  void halve_room_of(const Command& command) {
    const fs::path file = open_file_of(command);
    ASSERT_FALSE(file.empty()) << command.errors();
    const auto half = static_cast<rlim_t>(fs::file_size(file) / 2 / 4096 * 4096);
    const rlimit limit{half, half};
    ASSERT_EQ(::prlimit(command.process(), RLIMIT_FSIZE, &limit, nullptr), 0);
  }
  std::vector<std::string> on_disk(const std::string& steps) {
    return train({"--output", at("run"), "--steps", steps, "--save-interval", "0",
                  std::string("--offload-") + GetParam(), "disk", "--offload-dir", at("tier")});
  }
  // "'/.../tier/rankine-offload-": how every message names the file.
  std::string named() { return "'" + at("tier") + "/rankine-offload-"; }

  // A run whose folder is a memory file system.
  Finished on_tmpfs(unsigned long flags, const char* options) {
    fs::create_directories(home() / "tier");
    const std::string folder = at("tier");
    return run_command(home(), on_disk("1"), {.prepare = [=] {
                         if (::unshare(CLONE_NEWNS) != 0 ||
                             ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                             ::mount("none", folder.c_str(), "tmpfs", flags, options) != 0)
                           ::_exit(no_mount);
                       }});
  }
  static constexpr int no_mount = 99;

  // A run that has begun to train.
  std::unique_ptr<Command> begun() {
    auto command = std::make_unique<Command>(home(), on_disk("1000000"));
    while (command->running() && command->errors().find("| loss") == std::string::npos)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return command;
  }

  // A run that has saved its first checkpoint, at step 20, and stands still.
  std::unique_ptr<Command> saved() {
    auto words = on_disk("1000000");
    words.insert(words.end(), {"--lr-decay-style", "constant", "--save-interval", "20"});
    auto command = std::make_unique<Command>(home(), words);
    while (command->running() && !fs::exists(first_checkpoint()))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    command->send(SIGSTOP);
    return command;
  }
  fs::path first_checkpoint() { return home() / "run" / "step-00000020"; }

  // The run goes on from its newest complete checkpoint as if nothing had happened.
  void expect_resumed_as_uninterrupted() {
    const fs::path run_folder = home() / "run";
    int64_t newest = 0;
    for (const auto& entry : fs::directory_iterator(run_folder))
      if (const std::string name = entry.path().filename(); name.starts_with("step-"))
        if (!name.ends_with(".tmp")) newest = std::max<int64_t>(newest, std::stoll(name.substr(5)));
    ASSERT_GT(newest, 0);
    const std::string steps = std::to_string(newest + 3);
    const Finished resumed = run({"train", "--resume", "--output", at("run"), "--steps", steps});
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_NE(resumed.err.find("resumed   from step " + std::to_string(newest)), std::string::npos)
        << resumed.err;
    const Finished whole =
        run(train({"--output", at("whole"), "--steps", steps, "--lr-decay-style", "constant"}));
    ASSERT_EQ(whole.code, 0) << whole.err;
    EXPECT_EQ(numbers(run_folder), numbers(home() / "whole"));
  }
  // The way to the process's open tier file.
  fs::path open_file_of(const Command& command) {
    const fs::path open = fmt::format("/proc/{}/fd", command.process());
    for (const auto& entry : fs::directory_iterator(open)) {
      std::error_code gone;
      const fs::path target = fs::read_symlink(entry.path(), gone);
      if (!gone && target.string().starts_with(at("tier") + "/")) return entry.path();
    }
    return {};
  }
  bool nothing_left() { return fs::is_empty(home() / "tier"); }
};

TEST_P(TierFaults, AReadOnlyFolderIsNamed) {
  const Finished done = on_tmpfs(MS_RDONLY, "size=64m");
  if (done.code == no_mount) GTEST_SKIP() << "may not mount";
  EXPECT_EQ(done.code, 3) << done.err;
  EXPECT_NE(done.err.find("cannot create " + named()), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("Read-only file system"), std::string::npos) << done.err;
}

TEST_P(TierFaults, AFullDiskIsNamed) {
  const Finished done = on_tmpfs(0, "size=16k");
  if (done.code == no_mount) GTEST_SKIP() << "may not mount";
  EXPECT_EQ(done.code, 5) << done.err;
  EXPECT_NE(done.err.find("cannot reserve"), std::string::npos) << done.err;
  EXPECT_NE(done.err.find(named()), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("No space left on device"), std::string::npos) << done.err;
}

TEST_P(TierFaults, LackOfRoomDuringTheRunIsNamed) {
  const auto command = begun();
  ASSERT_NO_FATAL_FAILURE(halve_room_of(*command));
  ASSERT_TRUE(command->ends_within(20));
  const Finished done = command->wait();
  EXPECT_EQ(done.code, 5) << done.err;
  EXPECT_NE(done.err.find("cannot write " + named()), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("File too large"), std::string::npos) << done.err;
  EXPECT_TRUE(nothing_left());
}

// Someone else cuts the file: nothing of it is saved any more.
TEST_P(TierFaults, AFileThatIsCutDuringTheRunIsNamed) {
  const auto command = saved();
  const fs::path file = open_file_of(*command);
  ASSERT_FALSE(file.empty()) << command->errors();
  // Again and again, since a write behind the new end makes the file as long as before.
  const auto cut = [&] { return ::truncate(file.c_str(), 0); };
  ASSERT_EQ(cut(), 0);
  command->send(SIGCONT);
  while (command->running()) cut();
  const Finished done = command->wait();
  EXPECT_EQ(done.code, 4) << done.err;
  EXPECT_NE(done.err.find(" " + named()), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("the file was cut by someone else"), std::string::npos) << done.err;
  const size_t word = done.err.find("rankine: ");
  EXPECT_EQ(done.err.find("rankine: ", word + 1), std::string::npos) << done.err;
  EXPECT_TRUE(nothing_left());
  expect_resumed_as_uninterrupted();
}

TEST_P(TierFaults, AfterLackOfRoomTheRunGoesOn) {
  const auto command = saved();
  ASSERT_NO_FATAL_FAILURE(halve_room_of(*command));
  command->send(SIGCONT);
  const Finished done = command->wait();
  EXPECT_EQ(done.code, 5) << done.err;
  expect_resumed_as_uninterrupted();
}

TEST_P(TierFaults, AKilledRunLeavesNothing) {
  const auto command = begun();
  ASSERT_FALSE(open_file_of(*command).empty());
  EXPECT_TRUE(nothing_left());
  command->send(SIGKILL);
  command->wait();
  EXPECT_TRUE(nothing_left());
}

INSTANTIATE_TEST_SUITE_P(OnDisk, TierFaults,
                         ::testing::Values("optimizer", "parameters", "activations"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace rankine::test

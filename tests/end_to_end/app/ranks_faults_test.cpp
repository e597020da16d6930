#include <sys/mount.h>
#include <sys/statvfs.h>

#include <random>

#include "ranks_run.h"

// Ranks that die, stop or lose their disk: the job ends by itself, says why, and can be continued.
namespace rankine::test {
namespace {

constexpr int ranks = 2;
constexpr int deadline = 60;  // seconds, for what takes a few on an idle machine

class RankFaults : public RanksRun {
 protected:
  std::vector<std::string> endless(const std::vector<std::string>& more) {
    auto words = train_ranks(
        ranks, {"--steps", "1000000", "--strict", "--zero", "3", "--lr-decay-style", "constant",
                "--save-interval", "5", "--keep-checkpoints", "4", "--output", at("run")});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  // Continues 'run' for a few steps and compares it with a run that nothing happened to.
  void continues_identically() {
    const int64_t saved = newest_step();
    ASSERT_GT(saved, 0);
    const std::string steps = std::to_string(saved + 3);
    succeed(resume_ranks(ranks, "run", {"--steps", steps}));
    auto whole = endless({"--steps", steps});
    whole.insert(whole.end(), {"--output", at("whole")});
    succeed(whole);
    EXPECT_EQ(numbers(home() / "run"), numbers(home() / "whole"));
    EXPECT_TRUE(exported("run") == exported("whole"));
  }

  int64_t newest_step() {
    int64_t newest = 0;
    for (const auto& entry : fs::directory_iterator(home() / "run")) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("step-") && entry.path().extension() != ".tmp")
        newest = std::max<int64_t>(newest, std::stoll(name.substr(5)));
    }
    return newest;
  }
};

TEST_F(RankFaults, AKilledRankEndsTheJobWhichContinuesIdentically) {
  Command command(home(), endless({}));
  ASSERT_TRUE(reaches_step(command, "run", 12)) << command.errors();
  const std::vector<pid_t> all = descendants(command.process());
  ::kill(rank_processes(command, ranks)[1], SIGKILL);
  ASSERT_TRUE(command.ends_within(deadline)) << command.errors();
  EXPECT_TRUE(all_gone(all));
  const Finished ended = command.wait();
  EXPECT_NE(ended.code, 0) << ended.err;
  continues_identically();
}

TEST_F(RankFaults, AStoppedRankIsNamedByThatWhichWaits) {
  for (const int stopped : {0, 1}) {
    const std::string name = "run" + std::to_string(stopped);
    Command command(home(), endless({"--comm-timeout", "3", "--output", at(name)}));
    ASSERT_TRUE(reaches_step(command, name, 3)) << command.errors();
    const std::vector<pid_t> all = descendants(command.process());
    ::kill(rank_processes(command, ranks)[static_cast<size_t>(stopped)], SIGSTOP);
    ASSERT_TRUE(command.ends_within(deadline)) << command.errors();
    EXPECT_TRUE(all_gone(all));
    const Finished ended = command.wait();
    EXPECT_EQ(ended.code, 3) << ended.err;
    EXPECT_EQ(occurrences("\n" + ended.err, "\nrankine: "), 1u) << ended.err;
    const std::string waiting = std::to_string(1 - stopped), awaited = std::to_string(stopped);
    EXPECT_NE(ended.err.find("rank " + waiting + " (data " + waiting + ") waits in "),
              std::string::npos)
        << ended.err;
    EXPECT_NE(ended.err.find("for rank " + awaited + " (data " + awaited +
                             "), which has sent nothing for 3 s"),
              std::string::npos)
        << ended.err;
  }
}

TEST_F(RankFaults, AnInterruptSavesOnAllRanks) {
  for (const int signal : {SIGINT, SIGTERM}) {
    fs::remove_all(home() / "run");
    fs::remove_all(home() / "whole");
    Command command(home(), endless({"--save-interval", "0"}));
    ASSERT_TRUE(reaches_step(command, "run", 2)) << command.errors();
    command.send(signal);
    ASSERT_TRUE(command.ends_within(deadline)) << command.errors();
    const Finished ended = command.wait();
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(occurrences(ended.err, "saving and leaving"), 1u) << ended.err;
    EXPECT_EQ(static_cast<size_t>(newest_step()), metrics(home() / "run").size());
    continues_identically();
  }
}

TEST_F(RankFaults, AnInterruptBeforeTheFirstStepIsNotLost) {
  Command command(home(), endless({}));
  for (int i = 0; i < 50 * deadline && command.errors().find("memory") == std::string::npos; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::vector<pid_t> all = descendants(command.process());
  command.send(SIGINT);
  ASSERT_TRUE(command.ends_within(deadline)) << command.errors();
  EXPECT_TRUE(all_gone(all));
  const Finished ended = command.wait();
  EXPECT_EQ(ended.code == 0, newest_step() > 0) << ended.err;
}

TEST_F(RankFaults, ARankKilledWhileOthersSaveLeavesNoHalfCheckpoint) {
  std::mt19937 random(7);
  for (int round = 0; round < 3; ++round) {
    Command command(home(), round == 0 ? endless({"--save-interval", "1"})
                                       : resume_ranks(ranks, "run", {"--steps", "1000000"}));
    const size_t before = round == 0 ? 0 : metrics(home() / "run").size();
    ASSERT_TRUE(reaches_step(command, "run", before + 3)) << command.errors();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
    ::kill(rank_processes(command, ranks)[static_cast<size_t>(round % ranks)], SIGKILL);
    ASSERT_TRUE(command.ends_within(deadline)) << command.errors();
    EXPECT_NE(command.wait().code, 0);
    for (const auto& entry : fs::directory_iterator(home() / "run")) {
      const bool final_name = entry.is_directory() && entry.path().extension() != ".tmp";
      EXPECT_TRUE(!final_name || fs::exists(entry.path() / "manifest.json")) << entry.path();
    }
  }
  continues_identically();
}

TEST_F(RankFaults, AKilledParentLeavesNoRankBehind) {
  std::vector<pid_t> all;
  {
    Command command(home(), endless({}));
    ASSERT_TRUE(reaches_step(command, "run", 6)) << command.errors();
    all = descendants(command.process());
    command.send(SIGKILL);
    command.wait();
  }
  EXPECT_TRUE(all_gone(all));
  continues_identically();
}

// A disk of a few MiB; unmounted at the end.
class SmallDisk {
 public:
  explicit SmallDisk(fs::path place) : place_(std::move(place)) {
    fs::create_directories(place_);
    mounted_ = ::mount("none", place_.c_str(), "tmpfs", 0, "size=4m") == 0;
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (mounted_) ::umount2(place_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  void leave_free(uint64_t bytes) const {
    struct statvfs facts {};
    ::statvfs(place_.c_str(), &facts);
    const uint64_t free = facts.f_bavail * facts.f_bsize;
    std::ofstream(place_ / "filling") << std::string(free - bytes, 'x');
  }

 private:
  fs::path place_;
  bool mounted_ = false;
};

// With stages 1 and 2 parameters are on their way between the ranks while one of them fails.
TEST_F(RankFaults, AFullDiskEndsTheJobAndLeavesWholeCheckpoints) {
  const SmallDisk disk(home() / "disk");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small disk needs root";
  const std::string output = (home() / "disk" / "run").string();
  succeed(train_ranks(ranks, {"--steps", "2", "--output", output}));
  disk.leave_free(300'000);  // the 360 KB of another checkpoint do not fit
  for (const char* zero : {"1", "2", "3"}) {
    Command command(home(), {"train", "--resume", "--ranks", "2", "--steps", "4", "--zero", zero,
                             "--output", output});
    ASSERT_TRUE(command.ends_within(deadline)) << command.errors();
    const Finished ended = command.wait();
    EXPECT_EQ(ended.code, 5) << ended.err;
    EXPECT_EQ(occurrences("\n" + ended.err, "\nrankine: "), 1u) << ended.err;
    EXPECT_NE(ended.err.find("No space left"), std::string::npos) << ended.err;
    EXPECT_FALSE(fs::exists(fs::path(output) / "step-00000004"));
  }
  fs::remove(home() / "disk" / "filling");
  succeed({"train", "--resume", "--ranks", "2", "--output", output, "--steps", "4"});
  EXPECT_TRUE(fs::exists(fs::path(output) / "step-00000004" / "manifest.json"));
}

}  // namespace
}  // namespace rankine::test

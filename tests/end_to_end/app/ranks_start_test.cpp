#include <set>

#include "ranks_run.h"

// Before the first step: ranks that do not come, jobs too large to start, and what is left behind.
namespace rankine::test {
namespace {

constexpr int deadline = 60;  // seconds, for what takes a few on an idle machine

class RankStart : public RanksRun {
 protected:
  std::vector<std::string> endless(const std::vector<std::string>& more) {
    auto words = train_ranks(
        2, {"--steps", "1000000", "--save-interval", "0", "--zero", "2", "--output", at("run")});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // The processes of the ranks, as soon as there are two.
  static std::vector<pid_t> begun(const Command& command) {
    std::vector<pid_t> found;
    while (command.running() && found.size() < 2) found = descendants(command.process());
    return found;
  }
  static std::set<std::string> names_in(const fs::path& folder) {
    std::set<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder)) out.insert(entry.path().filename());
    return out;
  }
};

TEST_F(RankStart, ARankThatStopsBeforeItComesIsNamed) {
  for (const size_t stopped : {0, 1}) {
    Command command(home(), endless({"--comm-timeout", "2"}));
    const std::vector<pid_t> all = begun(command);
    ASSERT_EQ(all.size(), 2u) << command.errors();
    ::kill(all[stopped], SIGSTOP);
    ASSERT_TRUE(command.ends_within(deadline)) << command.errors();
    EXPECT_TRUE(all_gone(all));
    const Finished ended = command.wait();
    EXPECT_EQ(ended.code, 3) << ended.err;
    EXPECT_EQ(occurrences("\n" + ended.err, "\nrankine: "), 1u) << ended.err;
    EXPECT_NE(ended.err.find("for rank " + std::to_string(stopped) + " (data "), std::string::npos)
        << ended.err;
    fs::remove_all(home() / "run");
  }
}

TEST_F(RankStart, ARankThatIsKilledIsNamedWithWhatItDid) {
  Command command(home(), endless({}));
  const std::vector<pid_t> all = begun(command);
  ASSERT_EQ(all.size(), 2u) << command.errors();
  ::kill(all[1], SIGKILL);
  ASSERT_TRUE(command.ends_within(deadline)) << command.errors();
  EXPECT_TRUE(all_gone(all));
  const Finished ended = command.wait();
  EXPECT_EQ(ended.code, 128 + SIGKILL) << ended.err;
  EXPECT_EQ(occurrences("\n" + ended.err, "\nrankine: "), 1u) << ended.err;
  EXPECT_NE(ended.err.find("rankine: rank 1 (data 1) was killed by signal 9 (Killed) while it "),
            std::string::npos)
      << ended.err;
}

TEST_F(RankStart, AnInterruptAtOnceLeavesWithOneLine) {
  for (const int signal : {SIGINT, SIGTERM})
    for (const int ranks : {1, 2}) {
      auto words = endless({});
      if (ranks == 1) {
        const auto option = std::ranges::find(words, "--ranks");
        words.erase(option, option + 2);
      }
      Command command(home(), words, {.prepare = [] {
                        ::signal(SIGINT, SIG_DFL);
                        ::unsetenv("OMP_WAIT_POLICY");  // with it the program need not begin anew
                        ::unsetenv("GOMP_SPINCOUNT");
                      }});
      // It has begun anew once, which is when its signals are looked after.
      const auto begins = [&] {
        std::ifstream file("/proc/" + std::to_string(command.process()) + "/environ");
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        return text.find("GOMP_SPINCOUNT") != std::string::npos;
      };
      while (command.running() && !begins()) std::this_thread::yield();
      command.send(signal);
      ASSERT_TRUE(command.ends_within(deadline)) << command.errors();
      const Finished ended = command.wait();
      EXPECT_EQ(ended.code, 128 + signal) << ended.err;
      EXPECT_TRUE(ended.err.ends_with(signal == SIGINT ? "rankine: stopped by SIGINT\n"
                                                       : "rankine: stopped by SIGTERM\n"))
          << ended.err;
      EXPECT_EQ(occurrences("\n" + ended.err, "\nrankine: "), 1u) << ended.err;
      fs::remove_all(home() / "run");
    }
}

TEST_F(RankStart, MoreThanTheMachineTakesAreRefusedBeforeAnyIsStarted) {
  const auto refused = [&](const std::vector<std::string>& words, const std::string& says) {
    const Finished done = run(words);
    EXPECT_EQ(done.code, 5) << done.err;
    EXPECT_EQ(occurrences("\n" + done.err, "\nrankine: "), 1u) << done.err;
    EXPECT_NE(done.err.find(says), std::string::npos) << done.err;
  };
  refused(train_ranks(100000, {"--output", at("run")}), "--ranks 100000: ");
  refused(train_ranks(1000000, {"--oversubscribe", "64", "--output", at("run")}), "64 each");
  refused({"bench", "--collectives", "64K", "--ranks", "100000"}, "--ranks 100000: ");
  refused(train_ranks(1, {"--threads", "4096"}), "--threads 4096: ");
  refused(train_ranks(2, {"--micro-batch-size", "1000000", "--global-batch-size", "2000000",
                          "--output", at("run")}),
          "it would fit with");
  EXPECT_FALSE(fs::exists(home() / "run"));
}

// What rankine's ranks share has no name, and no port of theirs is open.
TEST_F(RankStart, KilledRanksLeaveNothingAndListenNowhere) {
  const auto shared = names_in("/dev/shm");
  Command command(home(), endless({}));
  ASSERT_TRUE(reaches_step(command, "run", 2)) << command.errors();
  const std::vector<pid_t> all = descendants(command.process());
  EXPECT_EQ(all.size(), 2u);
  for (const pid_t process : all) {
    std::error_code code;
    for (const auto& file :
         fs::directory_iterator("/proc/" + std::to_string(process) + "/fd", code))
      EXPECT_FALSE(fs::read_symlink(file.path(), code).string().starts_with("socket:"))
          << file.path();
  }
  for (const pid_t process : all) ::kill(process, SIGKILL);
  command.send(SIGKILL);
  command.wait();
  EXPECT_TRUE(all_gone(all));
  for (const std::string& name : names_in("/dev/shm"))
    EXPECT_TRUE(shared.contains(name) || name.find("rankine") == std::string::npos) << name;
}

}  // namespace
}  // namespace rankine::test

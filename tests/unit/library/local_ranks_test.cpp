#include "library/local_ranks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

// Ranks started on this machine; what they do is a line of shell, `$home` being the test's folder.
namespace rankine {
namespace {

namespace fs = std::filesystem;

class LocalRanks : public ::testing::Test {
 protected:
  fs::path home() const { return folder_.path(); }
  std::vector<std::string> shell(const std::string& script) const {
    return {"sh", "-c", "home='" + home().string() + "'; rank=$RANKINE_RANK; " + script};
  }
  int run(int ranks, const std::string& script, double timeout = 60) const {
    return start_local_ranks({.ranks = ranks,
                              .command = shell(script),
                              .timeout_seconds = timeout,
                              .place = [](int rank) { return "rank " + std::to_string(rank); },
                              .grace_seconds = 0.1});
  }

  // A process that does nothing but start the ranks; its exit code is theirs.
  pid_t starter(int ranks, const std::string& script) {
    const pid_t process = ::fork();
    if (process == 0) ::_exit(run(ranks, script));
    return process;
  }
  static int code_of(pid_t process) {
    int status = 0;
    ::waitpid(process, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  void wait_for(const std::string& name) const {
    while (!fs::exists(home() / name)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  // A file holding a process's number, which it wrote under another name first.
  static constexpr const char* write_number =
      "echo $$ > $home/new.$rank; mv $home/new.$rank $home/process.$rank; ";
  pid_t process_of(int rank) const {
    const std::string name = "process." + std::to_string(rank);
    wait_for(name);
    return std::stoi(read_text(home() / name));
  }
  // Returns once the process has ended, though nobody may have asked for its exit code yet.
  static void wait_for_end(pid_t process) {
    for (std::string name, state = "R"; state != "Z";) {
      std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
      if (!(stat >> name >> name >> state)) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

 private:
  test::TemporaryFolder folder_;
};

constexpr const char* forever = "while :; do sleep 0.02; done";

TEST_F(LocalRanks, EveryRankRunsWithItsNumbers) {
  ASSERT_EQ(run(3,
                "echo $RANKINE_RANKS $OMPI_COMM_WORLD_SIZE $OMPI_COMM_WORLD_LOCAL_RANK "
                "> $home/rank.$rank"),
            0);
  for (const char* rank : {"0", "1", "2"})
    EXPECT_EQ(read_text(home() / (std::string("rank.") + rank)), std::string("3 3 ") + rank + "\n");
}

TEST_F(LocalRanks, StandardInputIsEmpty) {
  EXPECT_EQ(run(1, "test -z \"$(cat)\""), 0);
}

TEST_F(LocalRanks, TheExitCodeIsTheFailedRanks) {
  EXPECT_EQ(run(2, std::string("test $rank = 0 || exit 4; ") + forever), 4);
}

TEST_F(LocalRanks, AKilledRankEndsTheJob) {
  EXPECT_EQ(run(2, std::string("test $rank = 0 || kill -9 $$; ") + forever), 128 + SIGKILL);
}

TEST_F(LocalRanks, OnlyTheRankSpeaksOfItsFailure) {
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  const int code =
      run(2, std::string("test $rank = 0 || { echo 'its own line' >&2; exit 4; }; ") + forever);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "its own line\n");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(code, 4);
}

TEST_F(LocalRanks, AFirstSignalAsksTheRanksToSaveAndLeave) {
  for (const int number : {SIGINT, SIGTERM}) {
    const pid_t process =
        starter(2, std::string("trap 'mv $home/process.$rank $home/saved.$rank; exit 0' USR1; ") +
                       write_number + forever);
    process_of(0), process_of(1);
    ::kill(process, number);
    EXPECT_EQ(code_of(process), 0) << number;
    EXPECT_TRUE(fs::remove(home() / "saved.0") && fs::remove(home() / "saved.1")) << number;
  }
}

TEST_F(LocalRanks, ASecondSignalEndsThem) {
  const pid_t process =
      starter(1, std::string("trap 'echo > $home/asked' USR1; ") + write_number + forever);
  const pid_t rank = process_of(0);
  ::kill(process, SIGTERM);
  wait_for("asked");
  ::kill(process, SIGINT);
  EXPECT_GE(code_of(process), 1);
  wait_for_end(rank);
}

TEST_F(LocalRanks, AThirdSignalKillsEvenDeafRanks) {
  const pid_t process = starter(2, std::string("trap 'echo > $home/asked' USR1; trap 'echo > "
                                               "$home/told' TERM; ") +
                                       write_number + forever);
  const pid_t ranks[] = {process_of(0), process_of(1)};
  ::kill(process, SIGINT);
  wait_for("asked");
  ::kill(process, SIGTERM);
  wait_for("told");
  ::kill(process, SIGINT);
  EXPECT_GE(code_of(process), 1);
  for (const pid_t rank : ranks) wait_for_end(rank);
}

TEST_F(LocalRanks, TheyEndWithTheProcessThatStartedThem) {
  const pid_t process = starter(2, std::string(write_number) + forever);
  const pid_t ranks[] = {process_of(0), process_of(1)};
  ::kill(process, SIGKILL);
  EXPECT_EQ(code_of(process), -SIGKILL);
  for (const pid_t rank : ranks) wait_for_end(rank);
}

// Nothing that runs in them, and no signal, keeps them.
TEST_F(LocalRanks, StoppedOnesEndWithIt) {
  const pid_t process = starter(2, std::string(write_number) + forever);
  const pid_t ranks[] = {process_of(0), process_of(1)};
  for (const pid_t rank : ranks) ::kill(rank, SIGSTOP);
  ::kill(process, SIGKILL);
  EXPECT_EQ(code_of(process), -SIGKILL);
  for (const pid_t rank : ranks) wait_for_end(rank);
}

TEST_F(LocalRanks, AKilledOneIsNamedWithItsSignalOnce) {
  ::testing::internal::CaptureStderr();
  const int code = run(3, std::string("test $rank = 0 || kill -11 $$; ") + forever);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, 128 + SIGSEGV);
  EXPECT_TRUE(said ==
                  "rankine: rank 1 was killed by signal 11 (Segmentation fault) while it "
                  "started\n" ||
              said ==
                  "rankine: rank 2 was killed by signal 11 (Segmentation fault) while it "
                  "started\n")
      << said;
}

TEST_F(LocalRanks, OneThatStaysStoppedWhileOthersHaveEndedEndsTheJob) {
  ::testing::internal::CaptureStderr();
  const int code = run(2, "test $rank = 0 || kill -STOP $$", 0.3);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, 3);
  EXPECT_TRUE(said.starts_with("rankine: rank 1 is stopped, ")) << said;
}

TEST_F(LocalRanks, ThoseThatASignalEndsBeforeTheyCatchItAreReportedOnce) {
  ::testing::internal::CaptureStderr();
  const pid_t process = starter(3, std::string(write_number) + forever);
  for (int rank = 0; rank < 3; ++rank) process_of(rank);
  ::kill(process, SIGINT);
  EXPECT_EQ(code_of(process), 130);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "rankine: stopped by SIGINT\n");
}

TEST_F(LocalRanks, AnImpossibleNumberIsRefused) {
  EXPECT_EQ(test::error_of([&] { run(0, "true"); }).kind(), ErrorKind::usage);
}

}  // namespace
}  // namespace rankine

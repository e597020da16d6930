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
#include "comm/launch.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

// Ranks started on this machine; what they do is a line of shell, `$home` being the test's folder.
namespace rankine {
namespace {

namespace fs = std::filesystem;

class LocalRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v mpirun.openmpi mpirun >/dev/null 2>&1") != 0)
      GTEST_SKIP() << "Open MPI's mpirun is not installed (package openmpi-bin)";
  }
  fs::path home() const { return folder_.path(); }
  std::vector<std::string> shell(const std::string& script) const {
    return {"sh", "-c", "home='" + home().string() + "'; rank=$OMPI_COMM_WORLD_RANK; " + script};
  }

  // A process that does nothing but start the ranks; its exit code is theirs.
  pid_t starter(int ranks, const std::string& script) {
    const std::vector<std::string> command = shell(script);
    const pid_t process = ::fork();
    if (process == 0) ::_exit(start_local_ranks(ranks, command));
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
  ASSERT_EQ(start_local_ranks(3, shell("echo $OMPI_COMM_WORLD_SIZE $OMPI_COMM_WORLD_LOCAL_SIZE "
                                       "$RANKINE_STARTED > $home/rank.$rank")),
            0);
  for (const char* rank : {"rank.0", "rank.1", "rank.2"})
    EXPECT_EQ(read_text(home() / rank), "3 3 " + std::to_string(::getpid()) + "\n") << rank;
}

TEST_F(LocalRanks, StandardInputIsEmpty) {
  EXPECT_EQ(start_local_ranks(1, shell("test -z \"$(cat)\"")), 0);
}

TEST_F(LocalRanks, TheExitCodeIsTheFailedRanks) {
  EXPECT_EQ(start_local_ranks(2, shell(std::string("test $rank = 0 || exit 4; ") + forever)), 4);
}

TEST_F(LocalRanks, AKilledRankEndsTheJob) {
  EXPECT_EQ(start_local_ranks(2, shell(std::string("test $rank = 0 || kill -9 $$; ") + forever)),
            128 + SIGKILL);
}

TEST_F(LocalRanks, OnlyTheRankSpeaksOfItsFailure) {
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  const int code = start_local_ranks(
      2, shell(std::string("test $rank = 0 || { echo 'its own line' >&2; exit 4; }; ") + forever));
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
  ::kill(process, SIGTERM);
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
  ::kill(process, SIGINT);
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

TEST_F(LocalRanks, AMissingLauncherIsNamedWithItsPackage) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", home().c_str(), 1);
  const Error error = test::error_of([&] { start_local_ranks(2, {"true"}); });
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(error.kind(), ErrorKind::environment);
  EXPECT_NE(std::string(error.what()).find("openmpi-bin"), std::string::npos) << error.what();
}

TEST_F(LocalRanks, AnImpossibleNumberIsRefused) {
  EXPECT_EQ(test::error_of([&] { start_local_ranks(0, {"true"}); }).kind(), ErrorKind::usage);
}

}  // namespace
}  // namespace rankine

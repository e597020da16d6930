#include "launch/launcher_processes.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <functional>

#include "support/temporary_folder.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Processes = std::vector<pid_t>;

// A folder that looks like /proc.
class LauncherOf : public ::testing::Test {
 protected:
  void add(pid_t process, const std::string& name, pid_t parent) {
    const fs::path folder = proc() / std::to_string(process);
    fs::create_directories(folder);
    std::ofstream(folder / "stat") << process << " (" << name << ") S " << parent << " 7 7 0 -1\n";
  }
  fs::path proc() const { return folder_.path(); }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(LauncherOf, IsTheNearestOneAndThoseDirectlyAbove) {
  add(50, "rankine", 40), add(40, "sh", 30);
  add(30, "orted", 20), add(20, "mpirun.openmpi", 10);
  add(10, "bash", 5), add(5, "mpirun", 2), add(2, "sshd", 1);
  EXPECT_EQ(launcher_of(50, proc()), (Processes{30, 20}));
}

TEST_F(LauncherOf, IsKnownByItsWholeName) {
  add(50, "rankine", 40), add(40, "mpirunner", 30);
  add(30, "a) (mpirun", 20), add(20, "mpirun) S 1 (", 1);
  EXPECT_EQ(launcher_of(50, proc()), Processes{});
  for (const char* name : {"mpirun", "mpiexec", "orterun", "prterun", "orted", "prted"}) {
    add(40, name, 30);
    EXPECT_EQ(launcher_of(50, proc()), Processes{40}) << name;
  }
}

TEST_F(LauncherOf, IsNeverTheFirstProcessNorOneThatIsGone) {
  add(50, "rankine", 1), add(1, "mpirun", 0), add(60, "rankine", 55);
  EXPECT_EQ(launcher_of(50, proc()), Processes{});
  EXPECT_EQ(launcher_of(60, proc()), Processes{});
  EXPECT_EQ(launcher_of(70, proc()), Processes{});
}

TEST_F(LauncherOf, IsOfTheSameUser) {
  add(50, "rankine", 40), add(40, "orted", 30), add(30, "sh", 20), add(20, "mpirun", 1);
  if (::chown((proc() / "40").c_str(), ::geteuid() + 1, ::getegid()) != 0)
    GTEST_SKIP() << "only root can give files to others";
  EXPECT_EQ(launcher_of(50, proc()), Processes{20});
}

// Processes that call themselves mpirun, and what becomes of them.
class LauncherEnds : public ::testing::Test {
 protected:
  // Those whose parents end become children of this process.
  void SetUp() override { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
  void TearDown() override { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }

  static pid_t start(const char* name, const std::function<void()>& body) {
    const pid_t process = ::fork();
    if (process != 0) return process;
    ::prctl(PR_SET_NAME, name);
    body();
    ::_exit(0);
  }
  [[noreturn]] static void stay() {
    while (true) ::pause();
  }
  // Waits for the end of every process below this one; the status of the given one.
  static int status_after_all(pid_t process) {
    int out = -1, status = 0;
    for (pid_t ended; (ended = ::wait(&status)) > 0 || errno == EINTR;)
      if (ended == process) out = status;
    return out;
  }
};

TEST_F(LauncherEnds, WithAllItStartedWhenDeaf) {
  const pid_t launcher = start("mpirun", [] {
    ::signal(SIGTERM, SIG_IGN);
    start("other rank", stay);
    const pid_t stopped = start("stopped rank", stay);
    ::kill(stopped, SIGSTOP);
    start("rank", [] {
      end_launcher_after(50ms);
      stay();
    });
    stay();
  });
  const int status = status_after_all(launcher);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

TEST_F(LauncherEnds, ByItselfWhenItDoesSoInTime) {
  const pid_t launcher = start("mpirun", [] {
    const pid_t rank = start("rank", [] { end_launcher_after(1h); });
    ::waitpid(rank, nullptr, 0);
    ::_exit(4);
  });
  const int status = status_after_all(launcher);  // the watcher is gone as well
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 4) << status;
}

TEST_F(LauncherEnds, NotThatOfAnotherJobAround) {
  const pid_t outer = start("mpirun", [] {
    const pid_t script = start("script", [] {
      const pid_t inner = start("mpirun", [] {
        start("rank", [] { end_launcher_after(50ms); });
        stay();
      });
      int status = 0;
      ::waitpid(inner, &status, 0);
      ::_exit(WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    });
    int status = 0;
    ::waitpid(script, &status, 0);
    ::_exit(WEXITSTATUS(status));
  });
  const int status = status_after_all(outer);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == SIGKILL) << status;
}

TEST(IsStopped, IsWhatASignalStopped) {
  const pid_t process = ::fork();
  if (process == 0)
    while (true) ::pause();
  EXPECT_FALSE(is_stopped(process));
  ::kill(process, SIGSTOP);
  int status = 0;
  ::waitpid(process, &status, WUNTRACED);
  EXPECT_TRUE(is_stopped(process));
  ::kill(process, SIGKILL);
  ::waitpid(process, &status, 0);
  EXPECT_FALSE(is_stopped(process));
}

}  // namespace
}  // namespace rankine

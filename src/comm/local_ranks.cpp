#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "comm/launch.h"
#include "comm/launcher_processes.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

// The program of this name in PATH, or "".
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view folders = path ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!folders.empty()) {
    const std::string_view folder = folders.substr(0, folders.find(':'));
    folders.remove_prefix(std::min(folders.size(), folder.size() + 1));
    const fs::path program = fs::path(folder) / name;
    std::error_code code;
    if (fs::is_regular_file(program, code) && ::access(program.c_str(), X_OK) == 0)
      return program.string();
  }
  return "";
}

std::string open_mpi_launcher() {
  std::string passed_over;
  for (const char* name : {"mpirun.openmpi", "mpirun"}) {
    std::string program = find_program(name);
    if (program.empty()) continue;
    std::error_code code;
    const std::string real = fs::canonical(program, code).filename().string();
    if (real.find("mpich") == std::string::npos && real.find("hydra") == std::string::npos)
      return program;
    passed_over = fmt::format(" ({} is MPICH's)", program);
  }
  fail(ErrorKind::environment,
       "several ranks need Open MPI's mpirun, which is not in PATH{}; install the package "
       "openmpi-bin, or start the ranks with srun --mpi=pmix",
       passed_over);
}

std::vector<std::string> launcher_words(int ranks, const std::vector<std::string>& command) {
  const std::string count = std::to_string(ranks);
  std::vector<std::string> words = {open_mpi_launcher(),
                                    // Its own report of a failed rank buries the rank's error.
                                    "--quiet", "-n", count,
                                    // In a batch job of several machines the ranks are still here.
                                    "--host", "localhost:" + count, "--oversubscribe",
                                    // The ranks share out the processors themselves.
                                    "--bind-to", "none",
                                    // Waiting ranks give up processors that others compute on.
                                    "--mca", "mpi_yield_when_idle", "1"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

// In the forked child: becomes the launcher.
[[noreturn]] void become(const std::vector<std::string>& words, pid_t parent,
                         const sigset_t& mask) {
  // A group of its own, so that the terminal's Ctrl-C reaches the parent alone; there it means more
  // than it does to mpirun. A group in the background may not read from the terminal, and writing
  // must not stop it.
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing > STDIN_FILENO) {
    ::dup2(nothing, STDIN_FILENO);
    ::close(nothing);
  }
  ::signal(SIGTTOU, SIG_IGN);
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  ::setenv(started_variable, std::to_string(parent).c_str(), 1);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(128 + SIGTERM);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  fmt::print(stderr, "rankine: cannot run {}: {}\n", words[0], std::strerror(errno));
  ::_exit(static_cast<int>(ErrorKind::environment));
}

// SIGKILL to a process and all it has started. mpirun puts each rank into a group of its own, so
// its group does not hold them.
void kill_tree(pid_t process) {
  ::kill(process, SIGSTOP);  // starts nothing from here on
  std::error_code code;
  for (const auto& thread : fs::directory_iterator(fmt::format("/proc/{}/task", process), code)) {
    std::ifstream children(thread.path() / "children");
    for (pid_t child = 0; children >> child;) kill_tree(child);
  }
  ::kill(process, SIGKILL);
}

// Blocks signals for as long as it lives, so that they can be waited for.
class BlockedSignals {
 public:
  BlockedSignals() {
    ::sigemptyset(&waited_);
    for (const int number : {SIGINT, SIGTERM, SIGCHLD, failure_signal})
      ::sigaddset(&waited_, number);
    ::sigprocmask(SIG_BLOCK, &waited_, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

  const sigset_t& before() const { return before_; }
  int wait(siginfo_t& facts) const { return ::sigwaitinfo(&waited_, &facts); }

 private:
  sigset_t waited_{}, before_{};
};

}  // namespace

int start_local_ranks(int ranks, const std::vector<std::string>& command) {
  require(ranks >= 1, ErrorKind::usage, "cannot start {} ranks; give 1 or more", ranks);
  expect(!command.empty(), "there is a command to start");
  const std::vector<std::string> words = launcher_words(ranks, command);
  const BlockedSignals signals;
  const pid_t parent = ::getpid();
  const pid_t launcher = ::fork();
  require(launcher >= 0, ErrorKind::resource, "cannot start another process: {}",
          std::strerror(errno));
  if (launcher == 0) become(words, parent, signals.before());
  int asked_to_stop = 0, told = 0;
  while (true) {
    siginfo_t facts{};
    const int number = signals.wait(facts);
    int status = 0;
    // The launcher's own end may be a signal or a crash when a rank has given up.
    if (number == failure_signal && facts.si_code == SI_QUEUE && told == 0)
      told = facts.si_value.sival_int;
    if (number == SIGCHLD && ::waitpid(launcher, &status, WNOHANG) == launcher) {
      if (told != 0) return told;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    if (number != SIGINT && number != SIGTERM) continue;
    ++asked_to_stop;
    if (asked_to_stop >= 3)
      kill_tree(launcher);
    else
      ::kill(launcher, asked_to_stop == 1 ? SIGUSR1 : SIGTERM);
  }
}

}  // namespace rankine

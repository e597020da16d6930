#include "library/local_ranks.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "base/error.h"
#include "comm/local_board.h"
#include "comm/silence_clock.h"
#include "launch/launcher_processes.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): not everywhere declared

namespace rankine {
namespace {

using Clock = std::chrono::steady_clock;

// Blocks signals for as long as it lives, so that they can be waited for.
class BlockedSignals {
 public:
  BlockedSignals() {
    ::sigemptyset(&waited_);
    for (const int number : {SIGINT, SIGTERM, SIGCHLD}) ::sigaddset(&waited_, number);
    ::pthread_sigmask(SIG_BLOCK, &waited_, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  const sigset_t& before() const { return before_; }
  // The next one, or 0 after a while.
  int wait(siginfo_t& facts) const {
    constexpr timespec while_{0, 100'000'000};
    return std::max(0, ::sigtimedwait(&waited_, &facts, &while_));
  }

 private:
  sigset_t waited_{}, before_{};
};

// Words as exec wants them.
std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> environment_of(int rank, int ranks, int board) {
  // Those of Open MPI's launcher are how scripts and profilers tell ranks apart.
  std::vector<std::string> out = {
      fmt::format("RANKINE_RANK={}", rank),
      fmt::format("RANKINE_RANKS={}", ranks),
      fmt::format("RANKINE_BOARD={}", board),
      fmt::format("OMPI_COMM_WORLD_RANK={}", rank),
      fmt::format("OMPI_COMM_WORLD_SIZE={}", ranks),
      fmt::format("OMPI_COMM_WORLD_LOCAL_RANK={}", rank),
      fmt::format("OMPI_COMM_WORLD_LOCAL_SIZE={}", ranks),
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry, name = text.substr(0, text.find('=') + 1);
    if (std::ranges::none_of(out, [&](const std::string& own) { return own.starts_with(name); }))
      out.push_back(text);
  }
  return out;
}

// In the forked child: becomes a rank.
[[noreturn]] void become(const std::vector<char*>& words, const std::vector<char*>& environment,
                         int board, pid_t parent, const sigset_t& mask) {
  // The system's answer to whatever happens to the parent, also for ranks that are stopped.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(128 + SIGKILL);
  // A group of its own, so that the terminal's Ctrl-C reaches the parent alone; there it means more
  // than it does here. A group in the background may not read from the terminal, and writing must
  // not stop it.
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing > STDIN_FILENO) {
    ::dup2(nothing, STDIN_FILENO);
    ::close(nothing);
  }
  ::signal(SIGTTOU, SIG_IGN);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) ::signal(number, SIG_DFL);
  ::fcntl(board, F_SETFD, 0);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::execvpe(words[0], words.data(), environment.data());
  const std::string_view said = "rankine: a rank cannot be started: its program does not run\n";
  [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, said.data(), said.size());
  ::_exit(static_cast<int>(ErrorKind::environment));
}

// The processes of one job, from their start to their end.
class Job {
 public:
  explicit Job(const LocalRanks& job)
      : job_(job),
        board_(LocalBoard::create(job.ranks)),
        processes_(static_cast<size_t>(job.ranks), 0),
        silence_(job.timeout_seconds) {}
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() {
    signal_all(SIGKILL);
    for (const pid_t process : processes_)
      if (process != 0) ::waitpid(process, nullptr, 0);
  }

  int run();

 private:
  void start(const sigset_t& mask);
  void reap();
  void judge(int rank, int status);
  const char* doing(int rank) const;
  void ask_to_stop(const siginfo_t& facts);
  void give_up(const std::string& why, int code);
  void say(const std::string& message);
  void watch_stopped();
  void signal_all(int number) const {
    for (const pid_t process : processes_)
      if (process != 0) ::kill(number == SIGKILL ? -process : process, number);
  }
  int living() const {
    return static_cast<int>(std::ranges::count_if(processes_, [](pid_t p) { return p != 0; }));
  }
  std::string place(size_t rank) const { return job_.place(static_cast<int>(rank)); }

  const LocalRanks& job_;
  LocalBoard board_;
  std::vector<pid_t> processes_;  // by rank; 0: it has ended
  int code_ = 0, asked_ = 0, first_signal_ = 0, last_signal_ = 0;
  Clock::time_point last_asked_{}, kill_at_ = Clock::time_point::max();
  SilenceClock silence_;  // of those that are stopped while others have ended
};

void Job::start(const sigset_t& mask) {
  const std::vector<char*> words = pointers_to(job_.command);
  const pid_t parent = ::getpid();
  for (int rank = 0; rank < job_.ranks; ++rank) {
    const std::vector<std::string> environment =
        environment_of(rank, job_.ranks, board_.descriptor());
    const std::vector<char*> entries = pointers_to(environment);
    const pid_t process = ::fork();
    require(process >= 0, ErrorKind::resource,
            "cannot start rank {} of {}: {}; choose fewer --ranks", rank, job_.ranks,
            std::strerror(errno));
    if (process == 0) become(words, entries, board_.descriptor(), parent, mask);
    ::setpgid(process, process);  // whoever comes first
    processes_[static_cast<size_t>(rank)] = process;
  }
}

// Of a failure that no rank has reported.
void Job::say(const std::string& message) {
  if (!board_.claim_report()) return;
  fmt::print(stderr, "rankine: {}\n", message);
  std::fflush(stderr);
}

// The others learn it from the board when they next wait for a rank, and clean up.
void Job::give_up(const std::string& why, int code) {
  if (code_ != 0) return;
  code_ = board_.exit_code() != 0 ? board_.exit_code() : code;
  board_.fail(why, code);
  signal_all(SIGCONT);
  kill_at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(job_.grace_seconds));
}

void Job::judge(int rank, int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  const std::string who = job_.place(rank);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : code - 128;
  // A rank that a stop signal ends says nothing, since each of them gets it.
  const bool stopped = signal == SIGINT || signal == SIGTERM || signal == SIGUSR1;
  if (asked_ > 0 && (stopped || signal == SIGKILL)) {
    if (code_ == 0) say(first_signal_ == SIGINT ? "stopped by SIGINT" : "stopped by SIGTERM");
    return give_up("the job was stopped", 128 + first_signal_);
  }
  if (code_ == 0 && (stopped || WIFSIGNALED(status)))
    say(fmt::format("{} was {} by signal {} ({}) while it {}", who, stopped ? "stopped" : "killed",
                    signal, ::strsignal(signal), doing(rank)));
  give_up(fmt::format("{} has ended with code {}", who, code), code);
}

const char* Job::doing(int rank) const {
  switch (board_.stage(rank)) {
    case LocalBoard::Stage::absent:
      return "started";
    case LocalBoard::Stage::connecting:
      return "connected";
    default:
      return "ran";
  }
}

void Job::reap() {
  for (size_t rank = 0; rank < processes_.size(); ++rank) {
    int status = 0;
    if (processes_[rank] == 0 || ::waitpid(processes_[rank], &status, WNOHANG) != processes_[rank])
      continue;
    processes_[rank] = 0;
    judge(static_cast<int>(rank), status);
  }
}

void Job::ask_to_stop(const siginfo_t& facts) {
  // `timeout` sends to the process and to its group, which is one request.
  const Clock::time_point now = Clock::now();
  const bool echo =
      facts.si_signo == last_signal_ && now - last_asked_ < std::chrono::milliseconds(20);
  last_asked_ = now;
  last_signal_ = facts.si_signo;
  if (echo) return;
  if (++asked_ == 1) first_signal_ = facts.si_signo;
  signal_all(asked_ == 1 ? SIGUSR1 : asked_ == 2 ? SIGTERM : SIGKILL);
}

// Ranks that work wait for each other and notice it themselves; the end is different.
void Job::watch_stopped() {
  if (code_ != 0 || living() == job_.ranks) return;
  for (size_t rank = 0; rank < processes_.size(); ++rank) {
    if (processes_[rank] == 0 || !is_stopped(processes_[rank])) continue;
    if (!silence_.lasts_too_long()) return;
    say(
        fmt::format("{} is stopped, and others have ended {:g} s ago (--comm-timeout sets the "
                    "limit)",
                    place(rank), job_.timeout_seconds));
    return give_up(place(rank) + " is stopped", static_cast<int>(ErrorKind::environment));
  }
  silence_ = SilenceClock(job_.timeout_seconds);
}

int Job::run() {
  const BlockedSignals signals;
  start(signals.before());
  while (living() > 0) {
    siginfo_t facts{};
    const int number = signals.wait(facts);
    if (number == SIGINT || number == SIGTERM) ask_to_stop(facts);
    reap();
    watch_stopped();
    if (Clock::now() > kill_at_) signal_all(SIGKILL);
  }
  return code_;
}

}  // namespace

int start_local_ranks(const LocalRanks& job) {
  require(job.ranks >= 1, ErrorKind::usage, "cannot start {} ranks; give 1 or more", job.ranks);
  expect(!job.command.empty() && job.place, "there is a command to start, and ranks have names");
  return Job(job).run();
}

}  // namespace rankine

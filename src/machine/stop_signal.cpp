#include "machine/stop_signal.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <string_view>
#include <thread>

namespace rankine {
namespace {

constexpr std::array stop_signals{SIGINT, SIGTERM, SIGUSR1};

std::atomic<bool> caught = false;  // a StopSignal lives
std::atomic<bool> says = true;
std::atomic<int> received_signal = 0;

sigset_t set_of_stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : stop_signals) sigaddset(&set, number);
  return set;
}

// Only what a signal handler may do.
[[noreturn]] void leave(int number) {
  const std::string_view line = number == SIGINT    ? "rankine: stopped by SIGINT\n"
                                : number == SIGTERM ? "rankine: stopped by SIGTERM\n"
                                                    : "rankine: stopped by SIGUSR1\n";
  if (says) {
    [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, line.data(), line.size());
  }
  ::_exit(stopped_code(number));
}

// A shell's background jobs ignore SIGINT.
bool ignored(int number) {
  struct sigaction action {};
  ::sigaction(number, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

// From now on a thread waits for them, and none may be handled on a computing thread's stack.
void forget_handlers() {
  for (const int number : stop_signals)
    if (!ignored(number)) std::signal(number, SIG_DFL);
}

struct Request {
  int number = 0;
  pid_t sender = 0;
  std::chrono::steady_clock::time_point at{};
};

// One request may come twice: `timeout` sends to the process and to its group, and who asks all
// processes of a job asks this one as well as what started it, which hands it on as SIGUSR1.
bool is_the_same(const Request& first, const Request& next) {
  const auto between = next.at - first.at;
  const bool by_starter = next.sender == ::getppid();
  if (next.number == SIGUSR1 || (first.number == SIGUSR1 && !by_starter))
    return next.number != first.number && between < std::chrono::seconds(1);
  return next.number == first.number && between < std::chrono::milliseconds(20);
}

void receive() {
  const sigset_t set = set_of_stop_signals();
  Request first;
  for (;;) {
    siginfo_t facts{};
    const int number = ::sigwaitinfo(&set, &facts);
    if (number < 0) continue;
    const Request request{number, facts.si_pid, std::chrono::steady_clock::now()};
    int none = 0;
    if (caught && received_signal.compare_exchange_strong(none, number))
      first = request;
    else if (caught ? !is_the_same(first, request) : !ignored(number))
      leave(number);
  }
}

}  // namespace

void leave_on_stop_signals(bool quiet) {
  says = !quiet;
  struct sigaction action {};
  action.sa_handler = leave;
  sigemptyset(&action.sa_mask);
  for (const int number : stop_signals)
    if (!ignored(number)) ::sigaction(number, &action, nullptr);
  const sigset_t set = set_of_stop_signals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void hold_stop_signals() {
  const sigset_t set = set_of_stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void receive_stop_signals_aside() {
  static std::once_flag once;
  std::call_once(once, [] {
    hold_stop_signals();
    forget_handlers();
    std::thread(receive).detach();
  });
}

StopSignal::StopSignal() {
  receive_stop_signals_aside();
  received_signal = 0;
  caught = true;
}

StopSignal::~StopSignal() {
  caught = false;
}

int StopSignal::received() const {
  return received_signal;
}

}  // namespace rankine

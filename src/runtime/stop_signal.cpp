#include "runtime/stop_signal.h"

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <mutex>
#include <thread>

namespace rankine {
namespace {

std::atomic<bool> caught = false;  // a StopSignal lives
std::atomic<int> received_signal = 0;

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set, number);
  return set;
}

// What the signal does to a program that knows nothing of it. A shell's background jobs ignore
// SIGINT.
void act_by_default(int number) {
  struct sigaction action {};
  ::sigaction(number, nullptr, &action);
  if (action.sa_handler == SIG_IGN && !caught) return;
  std::signal(number, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  std::raise(number);
}

void receive() {
  const sigset_t set = stop_signals();
  for (int number = 0;;) {
    if (::sigwait(&set, &number) != 0) continue;
    int none = 0;
    if (!caught || !received_signal.compare_exchange_strong(none, number)) act_by_default(number);
  }
}

}  // namespace

void receive_stop_signals_aside() {
  static std::once_flag once;
  std::call_once(once, [] {
    const sigset_t set = stop_signals();
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
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

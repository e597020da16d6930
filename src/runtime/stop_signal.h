#pragma once

namespace rankine {

// While this object lives, SIGINT, SIGTERM and SIGUSR1 (which launchers pass on) only set a flag,
// so that what runs can be finished and left; a second signal ends the process at once. One at a
// time.
class StopSignal {
 public:
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();
  int received() const;  // the signal's number, 0: none
};

// The exit code of a program that a signal stopped before its work was done, as shells have it.
inline int stopped_code(int signal) {
  return 128 + signal;
}

}  // namespace rankine

#pragma once

namespace rankine {

// While this object lives, SIGINT, SIGTERM and SIGUSR1 (which launchers pass on) only set a flag,
// so that the step loop can finish its step, save and leave; a second signal ends the process at
// once. One at a time.
class StopSignal {
 public:
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();
  int received() const;  // the signal's number, 0: none
};

}  // namespace rankine

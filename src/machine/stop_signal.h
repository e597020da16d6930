#pragma once

namespace rankine {

// To be called first of all: SIGINT, SIGTERM and SIGUSR1 (which launchers pass on) end this process
// at once with stopped_code() and one line, unless a shell has it ignore them; `quiet`: without the
// line, which another process prints.
void leave_on_stop_signals(bool quiet);
// Holds them back until the same program, begun anew, calls leave_on_stop_signals().
void hold_stop_signals();

// From now on a thread of its own receives these signals, to the same effect; threads that are made
// later never do. To be called before any others are made: oneDNN's f32 products on AVX-512 keep
// their stack pointer in a buffer on the heap, and a handler that ran there and returned would have
// overwritten what lies below it.
void receive_stop_signals_aside();

// While this object lives, the first of these signals only sets a flag, so that what runs can be
// finished and left; a second one ends the process at once. One at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  int received() const;  // the signal's number, 0: none
};

// The exit code of a program that a signal stopped before its work was done, as shells have it.
inline int stopped_code(int signal) {
  return 128 + signal;
}

}  // namespace rankine

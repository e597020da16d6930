#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/host_rings.h"
#include "comm/shared_memory.h"

namespace rankine {

// The memory that ranks started by one process share with it: where each of them stands, the files
// of their rings, and the first failure. It has no name anywhere and goes with the last process.
class LocalBoard {
 public:
  // Of a job of so many ranks, to be inherited by what is started; Error{resource}.
  static LocalBoard create(int ranks);
  // As one of these ranks; Error{environment} when the descriptor is no such memory.
  static LocalBoard join(int descriptor, int ranks);

  int descriptor() const { return memory_.descriptor(); }
  int ranks() const { return ranks_; }

  // How far a rank is; it only grows.
  enum class Stage : uint32_t { absent, connecting, running };
  void reach(int rank, Stage stage);
  Stage stage(int rank) const;

  // A rank's file of rings of its group number `group`, and whether it is told yet.
  void tell(int rank, size_t group, RingFile file);
  bool knows(int rank, size_t group) const;
  RingFile file(int rank, size_t group) const;
  // Says that it has mapped those of the others.
  void mapped(int rank, size_t group);
  bool has_mapped(int rank, size_t group) const;

  // One more wait of a rank for a peer, that it goes on, and its end. A rank waits for several at a
  // time: each of its groups works on its own. `keep` says of a rank that gives up that its waits
  // are to be seen by whoever gives up after it.
  void begin_wait(int rank, int peer);
  void go_on_waiting(int rank);
  void keep_waits(int rank);
  void end_wait(int rank, int peer);
  // From this rank on along who waits for whom, the shortest way to a rank that waits for nobody,
  // or that has not said for `silent_seconds` that its waits go on, so that it is itself stopped:
  // such a rank holds up the others. Empty when it is this rank, and when there is none.
  std::vector<int> waiting_beyond(int rank, double silent_seconds) const;

  // True for the first one that asks: it is the one to report a failure.
  bool claim_report();
  bool report_claimed() const;
  // Keeps the first failure.
  void fail(const std::string& why, int exit_code);
  std::string failure() const;  // "" while there is none
  int exit_code() const;        // of the failure, 0 while there is none

 private:
  struct Cell;
  struct Header;
  static size_t bytes(int ranks);
  std::atomic<int32_t>& waits(int rank, int peer) const;
  bool is_waiting(int rank, double silent_seconds) const;
  LocalBoard(SharedMemory memory, int ranks) : memory_(std::move(memory)), ranks_(ranks) {}
  Header& header() const;
  Cell& cell(int rank) const;

  SharedMemory memory_;
  int ranks_;
};

}  // namespace rankine

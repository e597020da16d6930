#pragma once
#include <mpi.h>

#include <array>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "comm/link.h"

namespace rankine {

// The way to MPI, which one thread calls at a time. Messages under way use memory whenever MPI is
// called for whatever reason, and cannot be taken back: once an operation was given up nothing but
// the abort may call it.
class MpiGate {
 public:
  // Error{environment} when it is closed.
  std::unique_lock<std::mutex> enter() {
    std::unique_lock lock(mutex_);
    require(!closed_, ErrorKind::environment,
            "nothing more is sent over MPI: an operation was given up after a failure");
    return lock;
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  bool closed() {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  std::mutex mutex_;
  bool closed_ = false;
};

// Pieces as MPI messages, a few under way at a time in each direction. Only files that include
// mpi.h see this.
class MpiLink final : public Link {
 public:
  // The gate outlives the link.
  MpiLink(MpiGate& gate, int peer, int send_tag, int receive_tag, size_t piece_bytes)
      : Link(piece_bytes),
        gate_(gate),
        peer_(peer),
        send_tag_(send_tag),
        receive_tag_(receive_tag) {}

  bool sent() override;
  void expect_message(size_t bytes) override;
  const std::byte* arrived() override;
  void consume() override;
  void give_up() override { gate_.close(); }

 private:
  static constexpr size_t window = 4;
  void post_receives();

  MpiGate& gate_;
  int peer_, send_tag_, receive_tag_;
  std::array<MPI_Request, window> sends_{MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL,
                                         MPI_REQUEST_NULL};
  std::array<MPI_Request, window> receives_{};
  std::vector<std::byte> buffers_;
  size_t left_to_post_ = 0, first_ = 0, posted_ = 0;  // a ring of posted receives
  bool first_arrived_ = false;
};

}  // namespace rankine

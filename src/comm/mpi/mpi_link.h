#pragma once
#include <mpi.h>

#include <array>
#include <mutex>
#include <vector>

#include "comm/link.h"

namespace rankine {

// Pieces as MPI messages, a few under way at a time in each direction. Only files that include
// mpi.h see this.
class MpiLink final : public Link {
 public:
  // `mutex` is held around every call of MPI.
  MpiLink(std::mutex& mutex, int peer, int send_tag, int receive_tag, size_t piece_bytes)
      : Link(piece_bytes),
        mutex_(mutex),
        peer_(peer),
        send_tag_(send_tag),
        receive_tag_(receive_tag) {}

  bool sent() override;
  void expect_message(size_t bytes) override;
  const std::byte* arrived() override;
  void consume() override;

 private:
  static constexpr size_t window = 4;
  void post_receives();

  std::mutex& mutex_;
  int peer_, send_tag_, receive_tag_;
  std::array<MPI_Request, window> sends_{MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL,
                                         MPI_REQUEST_NULL};
  std::array<MPI_Request, window> receives_{};
  std::vector<std::byte> buffers_;
  size_t left_to_post_ = 0, first_ = 0, posted_ = 0;  // a ring of posted receives
  bool first_arrived_ = false;
};

}  // namespace rankine

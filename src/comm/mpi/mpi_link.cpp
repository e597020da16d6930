#include "comm/mpi/mpi_link.h"

#include <algorithm>

#include "base/error.h"

namespace rankine {

bool MpiLink::sent() {
  const auto lock = gate_.enter();
  bool idle = true;
  for (MPI_Request& request : sends_) {
    int done = 1;
    if (request != MPI_REQUEST_NULL) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0 && left_to_send_ > 0) {
      const size_t count = std::min(left_to_send_, piece_bytes());
      MPI_Isend(data_, static_cast<int>(count), MPI_BYTE, peer_, send_tag_, MPI_COMM_WORLD,
                &request);
      data_ += count;
      left_to_send_ -= count;
      done = 0;
    }
    idle = idle && done != 0;
  }
  return idle && left_to_send_ == 0;
}

void MpiLink::expect_message(size_t bytes) {
  expect(left_to_post_ == 0 && posted_ == 0, "a message is consumed before the next");
  if (buffers_.empty()) buffers_.resize(window * piece_bytes());
  left_to_post_ = bytes;
  const auto lock = gate_.enter();
  post_receives();
}

void MpiLink::post_receives() {
  for (; left_to_post_ > 0 && posted_ < window; ++posted_) {
    const size_t slot = (first_ + posted_) % window, count = std::min(left_to_post_, piece_bytes());
    MPI_Irecv(buffers_.data() + slot * piece_bytes(), static_cast<int>(count), MPI_BYTE, peer_,
              receive_tag_, MPI_COMM_WORLD, &receives_[slot]);
    left_to_post_ -= count;
  }
}

const std::byte* MpiLink::arrived() {
  if (!first_arrived_) {
    if (posted_ == 0) return nullptr;
    const auto lock = gate_.enter();
    int done = 0;
    MPI_Test(&receives_[first_], &done, MPI_STATUS_IGNORE);
    if (done == 0) return nullptr;
    first_arrived_ = true;
  }
  return buffers_.data() + first_ * piece_bytes();
}

void MpiLink::consume() {
  first_ = (first_ + 1) % window;
  --posted_;
  first_arrived_ = false;
  const auto lock = gate_.enter();
  post_receives();
}

}  // namespace rankine

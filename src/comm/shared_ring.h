#pragma once
#include <atomic>
#include <cstdint>

#include "comm/link.h"

namespace rankine {

// One direction between two processes of a host, in memory both have mapped: a ring of pieces. The
// memory begins as zeros.
struct SharedRing {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
  alignas(64) std::byte slots[1];

  static size_t bytes(size_t slots, size_t piece_bytes) {
    return sizeof(SharedRing) + slots * piece_bytes;
  }
};

class SharedRingLink final : public Link {
 public:
  // Both rings have `slots` slots and outlive the link.
  SharedRingLink(SharedRing& out, SharedRing& in, size_t slots, size_t piece_bytes)
      : Link(piece_bytes), out_(out), in_(in), slots_(slots) {}

  bool sent() override;
  std::byte* room() override;
  void publish() override;
  void expect_message(size_t bytes) override;
  const std::byte* arrived() override;
  void consume() override;

 private:
  std::byte* slot(SharedRing& ring, uint64_t number) const {
    return ring.slots + number % slots_ * piece_bytes();
  }
  SharedRing &out_, &in_;
  size_t slots_;
};

}  // namespace rankine

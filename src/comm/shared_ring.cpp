#include "comm/shared_ring.h"

#include <algorithm>

#include "base/error.h"
#include "comm/combine.h"

namespace rankine {

bool SharedRingLink::sent() {
  while (left_to_send_ > 0) {
    const uint64_t number = out_.written.load(std::memory_order_relaxed);
    if (number - out_.read.load(std::memory_order_acquire) == slots_) return false;
    const size_t count = std::min(left_to_send_, piece_bytes());
    copy_through_caches(slot(out_, number), data_, count);
    out_.written.store(number + 1, std::memory_order_release);
    data_ += count;
    left_to_send_ -= count;
  }
  return true;
}

void SharedRingLink::expect_message(size_t) {}

const std::byte* SharedRingLink::arrived() {
  const uint64_t number = in_.read.load(std::memory_order_relaxed);
  return in_.written.load(std::memory_order_acquire) > number ? slot(in_, number) : nullptr;
}

void SharedRingLink::consume() {
  in_.read.store(in_.read.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

}  // namespace rankine

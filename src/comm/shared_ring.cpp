#include "comm/shared_ring.h"

#include <algorithm>

#include "base/error.h"
#include "comm/combine.h"

namespace rankine {

bool SharedRingLink::sent() {
  while (left_to_send_ > 0) {
    std::byte* to = room();
    if (to == nullptr) return false;
    const size_t count = std::min(left_to_send_, piece_bytes());
    copy_through_caches(to, data_, count);
    publish();
    data_ += count;
    left_to_send_ -= count;
  }
  return true;
}

std::byte* SharedRingLink::room() {
  const uint64_t number = out_.written.load(std::memory_order_relaxed);
  return number - out_.read.load(std::memory_order_acquire) < slots_ ? slot(out_, number) : nullptr;
}

void SharedRingLink::publish() {
  out_.written.store(out_.written.load(std::memory_order_relaxed) + 1, std::memory_order_release);
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

#include "io/tier_memory.h"

#include "base/error.h"
#include "io/tier_file_engine.h"
#include "io/tier_file_queue.h"

namespace rankine {

TierMemory::TierMemory(const Tensor& memory)
    : bytes_(static_cast<uint64_t>(memory.bytes())),
      queue_(std::make_unique<TierQueue>(make_memory_engine(static_cast<std::byte*>(memory.data)),
                                         "host memory")) {}

TierMemory::~TierMemory() = default;

TierUse TierMemory::use() const {
  return queue_->use();
}

TierWork TierMemory::start_read(uint64_t offset, void* to, uint64_t bytes) {
  return start(false, offset, to, bytes);
}

TierWork TierMemory::start_write(uint64_t offset, const void* from, uint64_t bytes) {
  return start(true, offset, const_cast<void*>(from), bytes);
}

TierWork TierMemory::start(bool write, uint64_t offset, void* memory, uint64_t bytes) {
  expect(offset <= bytes_ && bytes <= bytes_ - offset, "a request lies within its tier's memory");
  if (bytes == 0) return {};
  return TierWork(queue_->start({write, offset, static_cast<std::byte*>(memory), bytes}));
}

}  // namespace rankine

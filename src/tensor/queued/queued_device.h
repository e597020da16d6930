#pragma once
#include <mutex>
#include <vector>

#include "tensor/device.h"

namespace rankine {

// A simulated device: memory of this process that no thread can touch at the addresses its tensors
// have, so that whoever reads or writes them without its queues ends the process at that line.
class QueuedDevice final : public Device {
 public:
  explicit QueuedDevice(uint64_t seed) : seed_(seed) {}  // of the delays of its copies
  DeviceKind kind() const override { return DeviceKind::queued; }
  std::string description() const override { return "a simulated device (this processor)"; }
  std::unique_ptr<MemoryBlock> reserve(uint64_t bytes) override;
  std::unique_ptr<MemoryBlock> reserve_host(uint64_t bytes) override;
  std::unique_ptr<TierSpace> reach(std::unique_ptr<TierSpace> space, Queue& after) override;
  // Where its queues find memory; other memory is where it is. Any thread may call.
  void* reach(void* memory) const;

 private:
  class Block;
  struct Range {
    const std::byte* begin;
    uint64_t bytes;
  };
  const uint64_t seed_;
  mutable std::mutex mutex_;
  std::vector<Range> ranges_;
};

}  // namespace rankine

#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tensor/device.h"
#include "tensor/memory_plan.h"
#include "tensor/tensor.h"

namespace rankine {

// Reserves exactly what a plan lists for one tier and hands out views by name. Layout: permanent
// entries, then the scratch phases on top of each other. Memory is zero at first use.
class Arena {
 public:
  // From `device`, which outlives it: its own memory, or for the host tier memory of the host that
  // it reaches. Error{resource} when the system has not that much.
  Arena(const MemoryPlan& plan, Tier tier, Device& device = host_device());
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // A view of the named entry. An unlisted name, or more bytes than listed, is an internal error.
  Tensor take(std::string_view name, DType dtype, const Shape& shape);

  Device& device() const { return device_; }
  uint64_t reserved_bytes() const { return bytes_; }
  // The largest sum of entries handed out that live at the same time.
  uint64_t peak_bytes() const;
  // Names listed and never handed out.
  std::vector<std::string> unused() const;

 private:
  struct Place {
    Allocation allocation;
    uint64_t offset = 0;
    bool taken = false;
  };
  std::unordered_map<std::string, Place> places_;
  Device& device_;
  DeviceKind kind_;  // of the memory
  uint64_t bytes_ = 0;
  std::unique_ptr<MemoryBlock> memory_;
};

}  // namespace rankine

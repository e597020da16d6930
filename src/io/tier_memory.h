#pragma once
#include "tensor/tensor.h"
#include "tensor/tier_space.h"

namespace rankine {

class TierQueue;

// The host tier's storage: memory that a thread of its own copies from and to.
class TierMemory final : public TierSpace {
 public:
  explicit TierMemory(const Tensor& memory);  // it outlives this
  ~TierMemory() override;                     // waits for what is under way

  TierUse use() const override;
  TierWork start_read(uint64_t offset, void* to, uint64_t bytes) override;
  TierWork start_write(uint64_t offset, const void* from, uint64_t bytes) override;

 private:
  TierWork start(bool write, uint64_t offset, void* memory, uint64_t bytes);

  uint64_t bytes_;
  std::unique_ptr<TierQueue> queue_;
};

}  // namespace rankine

#include "tensor/queued/queued_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "tensor/queued/work_queue.h"
#include "tensor/tier_space.h"

namespace rankine {
namespace {

// From the addresses of tensors to those of their memory.
constexpr uint64_t gap = uint64_t{16} << 30;

// Requests of a tier that start behind the work of a queue, reads and writes each in order.
class QueuedTier final : public TierSpace {
 public:
  QueuedTier(std::unique_ptr<TierSpace> space, const QueuedDevice& device, Queue& after,
             uint64_t seed)
      : space_(std::move(space)),
        device_(device),
        after_(after),
        reads_(seed, [](void* memory) { return memory; }),
        writes_(seed + 1, [](void* memory) { return memory; }) {}

  TierUse use() const override { return space_->use(); }
  TierWork start_read(uint64_t offset, void* to, uint64_t bytes) override {
    reads_.put([this, after = after_.mark(), offset, to = device_.reach(to), bytes] {
      after.wait();
      space_->start_read(offset, to, bytes).wait();
    });
    return TierWork(reads_.place());
  }
  TierWork start_write(uint64_t offset, const void* from, uint64_t bytes) override {
    void* const memory = device_.reach(const_cast<void*>(from));
    writes_.put([this, after = after_.mark(), offset, memory, bytes] {
      after.wait();
      space_->start_write(offset, memory, bytes).wait();
    });
    return TierWork(writes_.place());
  }

 private:
  const std::unique_ptr<TierSpace> space_;
  const QueuedDevice& device_;
  Queue& after_;
  WorkQueue reads_, writes_;
};

}  // namespace

class QueuedDevice::Block final : public MemoryBlock {
 public:
  Block(QueuedDevice& device, uint64_t bytes) : device_(device), bytes_(bytes) {
    require(bytes <= gap, ErrorKind::resource, "the simulated device has {}, not {}",
            format_bytes(gap), format_bytes(bytes));
    if (bytes == 0) return;
    void* const mapped =
        ::mmap(nullptr, gap + bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(mapped != MAP_FAILED, ErrorKind::resource, "cannot reserve {} of addresses: {}",
            format_bytes(gap + bytes), std::strerror(errno));
    begin_ = static_cast<std::byte*>(mapped);
    require(::mprotect(begin_ + gap, bytes, PROT_READ | PROT_WRITE) == 0, ErrorKind::resource,
            "cannot reserve {} of memory: {}", format_bytes(bytes), std::strerror(errno));
    const std::lock_guard lock(device_.mutex_);
    device_.ranges_.push_back({begin_, bytes_});
  }
  ~Block() override {
    if (begin_ == nullptr) return;
    {
      const std::lock_guard lock(device_.mutex_);
      std::erase_if(device_.ranges_, [&](const Range& range) { return range.begin == begin_; });
    }
    ::munmap(begin_, gap + bytes_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  void* data() const override { return begin_; }

 private:
  QueuedDevice& device_;
  const uint64_t bytes_;
  std::byte* begin_ = nullptr;
};

std::unique_ptr<MemoryBlock> QueuedDevice::reserve(uint64_t bytes) {
  return std::make_unique<Block>(*this, bytes);
}

std::unique_ptr<MemoryBlock> QueuedDevice::reserve_host(uint64_t bytes) {
  return host_device().reserve(bytes);
}

std::unique_ptr<TierSpace> QueuedDevice::reach(std::unique_ptr<TierSpace> space, Queue& after) {
  return std::make_unique<QueuedTier>(std::move(space), *this, after, seed_ + 2);
}

void* QueuedDevice::reach(void* memory) const {
  auto* const at = static_cast<std::byte*>(memory);
  const std::lock_guard lock(mutex_);
  for (const Range& range : ranges_)
    if (at >= range.begin && at < range.begin + range.bytes) return at + gap;
  return memory;
}

}  // namespace rankine

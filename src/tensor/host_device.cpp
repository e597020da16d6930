#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "tensor/device.h"
#include "tensor/tier_space.h"

namespace rankine {
namespace {

constexpr uint64_t huge_page = uint64_t{2} << 20;

class MappedBlock final : public MemoryBlock {
 public:
  explicit MappedBlock(uint64_t bytes) {
    if (bytes == 0) return;
    // Map one huge page more than needed, so that the start can be aligned to one.
    mapped_ = (bytes + huge_page - 1) / huge_page * huge_page;
    void* mapped = ::mmap(nullptr, mapped_ + huge_page, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(mapped != MAP_FAILED, ErrorKind::resource, "cannot reserve {} of memory: {}",
            format_bytes(bytes), std::strerror(errno));
    const uint64_t behind = reinterpret_cast<uintptr_t>(mapped) % huge_page;
    const uint64_t before = behind == 0 ? 0 : huge_page - behind, after = huge_page - before;
    memory_ = static_cast<std::byte*>(mapped) + before;
    if (before > 0) ::munmap(mapped, before);
    ::munmap(memory_ + mapped_, after);
    // Huge pages only where they lie wholly inside, so that resident memory stays at the plan.
    if (bytes >= huge_page) ::madvise(memory_, bytes / huge_page * huge_page, MADV_HUGEPAGE);
  }
  ~MappedBlock() override {
    if (memory_ != nullptr) ::munmap(memory_, mapped_);
  }
  MappedBlock(const MappedBlock&) = delete;
  MappedBlock& operator=(const MappedBlock&) = delete;
  void* data() const override { return memory_; }

 private:
  uint64_t mapped_ = 0;
  std::byte* memory_ = nullptr;
};

class HostQueue final : public Queue {
 public:
  Mark mark(const Site&) override { return {}; }
  void follow(const Mark& mark, const Site&) override { mark.wait(); }
  void copy(void* to, const void* from, uint64_t bytes) override {
    if (bytes > 0) std::memmove(to, from, bytes);
  }
};

class HostDevice final : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::cpu; }
  std::string description() const override { return "processor"; }
  std::unique_ptr<MemoryBlock> reserve(uint64_t bytes) override {
    return std::make_unique<MappedBlock>(bytes);
  }
  std::unique_ptr<MemoryBlock> reserve_host(uint64_t bytes) override { return reserve(bytes); }
  std::unique_ptr<TierSpace> reach(std::unique_ptr<TierSpace> space, Queue&) override {
    return space;
  }
};

}  // namespace

Queue& host_queue() {
  static HostQueue queue;
  return queue;
}

Device& host_device() {
  static HostDevice device;
  return device;
}

}  // namespace rankine

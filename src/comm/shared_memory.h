#pragma once
#include <cstddef>
#include <utility>

namespace rankine {

// Anonymous memory that processes of one host share through a descriptor; none when empty. Made
// without the host's shared-memory folder, which containers often keep tiny.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept { swap(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~SharedMemory();

  static SharedMemory create(size_t bytes);      // zeros; empty when the system refuses
  static SharedMemory of_threads(size_t bytes);  // zeros, of this process alone
  // Of the process that started this one, which left the descriptor open; empty when it is no
  // memory of this size.
  static SharedMemory inherited(int descriptor, size_t bytes);
  // Another process's; empty when it cannot be reached.
  static SharedMemory open_of(int pid, int descriptor, size_t bytes);

  std::byte* data() const { return data_; }
  int descriptor() const { return descriptor_; }

 private:
  void swap(SharedMemory& other) {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(descriptor_, other.descriptor_);
  }
  static SharedMemory map(int descriptor, size_t bytes);
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  int descriptor_ = -1;
};

}  // namespace rankine

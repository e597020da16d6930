#include "comm/shared_memory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rankine {

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

SharedMemory SharedMemory::map(int descriptor, size_t bytes) {
  SharedMemory file;
  if (descriptor < 0) return file;
  file.descriptor_ = descriptor;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return file;
  file.data_ = static_cast<std::byte*>(memory);
  file.bytes_ = bytes;
  return file;
}

SharedMemory SharedMemory::create(size_t bytes) {
  const int descriptor = memfd_create("rankine", MFD_CLOEXEC);
  if (descriptor >= 0 && ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) {
    close(descriptor);
    return {};
  }
  return map(descriptor, bytes);
}

SharedMemory SharedMemory::of_threads(size_t bytes) {
  SharedMemory memory;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return memory;
  memory.data_ = static_cast<std::byte*>(data);
  memory.bytes_ = bytes;
  return memory;
}

SharedMemory SharedMemory::inherited(int descriptor, size_t bytes) {
  struct stat facts {};
  if (::fstat(descriptor, &facts) != 0 || static_cast<size_t>(facts.st_size) != bytes) return {};
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return map(descriptor, bytes);
}

SharedMemory SharedMemory::open_of(int pid, int descriptor, size_t bytes) {
  return map(open(fmt::format("/proc/{}/fd/{}", pid, descriptor).c_str(), O_RDWR | O_CLOEXEC),
             bytes);
}

}  // namespace rankine

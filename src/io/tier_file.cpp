#include "io/tier_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "io/tier_file_engine.h"
#include "io/tier_file_queue.h"

namespace rankine {
namespace {

// Turns the page cache off for this descriptor; false where there is nothing else.
bool switch_to_direct(int descriptor) {
  struct statfs info {};
  // Newer kernels accept the flag there too, and copy all the same.
  if (::fstatfs(descriptor, &info) == 0 &&
      (info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC))
    return false;
  const int flags = ::fcntl(descriptor, F_GETFL);
  return flags >= 0 && ::fcntl(descriptor, F_SETFL, flags | O_DIRECT) == 0;
}

std::unique_ptr<TierEngine> make_engine(TierFile::Engine wanted, int descriptor, bool direct) {
  std::unique_ptr<TierEngine> engine;
  if (wanted != TierFile::Engine::threads) engine = make_uring_engine(descriptor, direct);
  require(engine || wanted != TierFile::Engine::io_uring, ErrorKind::environment,
          "io_uring is not to be had: built without liburing, or refused by this system");
  return engine ? std::move(engine) : make_thread_engine(descriptor);
}

}  // namespace

TierFile::TierFile(const Setup& setup)
    : claim_(setup.folder, setup.name, setup.bytes),
      direct_(setup.direct && switch_to_direct(claim_.descriptor())),
      queue_(std::make_unique<TierQueue>(make_engine(setup.engine, claim_.descriptor(), direct_),
                                         claim_.path())) {
  expect(setup.bytes % alignment == 0, "a tier file's size is a multiple of 4096");
}

TierFile::~TierFile() = default;

void* TierFile::map() const {
  void* memory =
      ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, claim_.descriptor(), 0);
  if (memory == MAP_FAILED) fail_io("map", path());
  return memory;
}

std::string_view TierFile::engine_name() const {
  return queue_->engine_name();
}

std::string TierFile::description() const {
  return fmt::format("{} in '{}', {}{}", format_bytes(bytes()), path().parent_path().string(),
                     engine_name(), direct_ ? ", direct" : ", through the page cache");
}

TierUse TierFile::use() const {
  return queue_->use();
}

TierWork TierFile::start_read(uint64_t offset, void* to, uint64_t bytes) {
  return start(false, offset, static_cast<std::byte*>(to), bytes);
}

TierWork TierFile::start_write(uint64_t offset, const void* from, uint64_t bytes) {
  return start(true, offset, static_cast<std::byte*>(const_cast<void*>(from)), bytes);
}

TierWork TierFile::start(bool write, uint64_t offset, std::byte* memory, uint64_t bytes) {
  expect(offset % alignment == 0 && bytes % alignment == 0 &&
             reinterpret_cast<uintptr_t>(memory) % alignment == 0,
         "offset, memory and size of a tier file's request are multiples of 4096");
  expect(offset <= this->bytes() && bytes <= this->bytes() - offset,
         "a request lies within its tier file");
  if (bytes == 0) return {};
  // A write behind the new end would make a cut file as long as before, with zeros in between.
  struct stat info {};
  require(::fstat(claim_.descriptor(), &info) == 0 &&
              static_cast<uint64_t>(info.st_size) >= this->bytes(),
          ErrorKind::data, "cannot {} '{}' at offset {}: the file was cut by someone else",
          write ? "write" : "read", path().string(), offset);
  return TierWork(queue_->start({write, offset, memory, bytes}));
}

}  // namespace rankine

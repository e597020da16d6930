#include "base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace rankine {
namespace {

[[noreturn]] void fail_io(std::string_view action, const std::filesystem::path& path,
                          std::string_view place = "") {
  const int code = errno;
  const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  fail(full ? ErrorKind::resource : ErrorKind::environment, "cannot {} '{}'{}: {}", action,
       path.string(), place, std::strerror(code));
}

std::string at_offset(uint64_t offset) {
  return fmt::format(" at offset {}", offset);
}

}  // namespace

File File::open_read(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail_io("open", path);
  File file(descriptor, path);
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) fail_io("stat", path);
  require(!S_ISDIR(info.st_mode), ErrorKind::environment, "cannot read '{}': it is a folder",
          path.string());
  return file;
}

File File::create(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) fail_io("create", path);
  return {descriptor, path};
}

File File::create_locked(const std::filesystem::path& path) {
  for (;;) {
    File file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644), path);
    if (file.descriptor_ < 0) fail_io("create", path);
    while (::flock(file.descriptor_, LOCK_EX) != 0)
      if (errno != EINTR) fail_io("lock", path);
    // Whoever held it may have renamed or removed it meanwhile.
    struct stat held {
    }, named{};
    if (::fstat(file.descriptor_, &held) != 0) fail_io("stat", path);
    if (::stat(path.c_str(), &named) != 0 || held.st_ino != named.st_ino ||
        held.st_dev != named.st_dev)
      continue;
    if (::ftruncate(file.descriptor_, 0) != 0) fail_io("truncate", path);
    return file;
  }
}

File::File(File&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

uint64_t File::size() const {
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0) fail_io("stat", path_);
  return static_cast<uint64_t>(info.st_size);
}

void File::read(void* into, uint64_t bytes, uint64_t offset) const {
  auto* out = static_cast<char*>(into);
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor_, out, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_io("read", path_, at_offset(offset));
    require(got > 0, ErrorKind::data, "'{}' ends at offset {}, {} bytes short", path_.string(),
            offset, bytes);
    out += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
}

void File::write(const void* from, uint64_t bytes, uint64_t offset) {
  const auto* in = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t put = ::pwrite(descriptor_, in, bytes, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail_io("write", path_, at_offset(offset));
    in += put;
    offset += static_cast<uint64_t>(put);
    bytes -= static_cast<uint64_t>(put);
  }
}

void File::sync() {
  if (::fsync(descriptor_) != 0) fail_io("fsync", path_);
}

void File::close() {
  if (descriptor_ >= 0 && ::close(std::exchange(descriptor_, -1)) != 0) fail_io("close", path_);
}

std::string read_text(const std::filesystem::path& path, uint64_t limit) {
  const File file = File::open_read(path);
  const uint64_t bytes = file.size();
  require(bytes <= limit, ErrorKind::data, "'{}' has {} bytes, more than the {} allowed",
          path.string(), bytes, limit);
  std::string text(bytes, '\0');
  file.read(text.data(), bytes, 0);
  return text;
}

void write_text_atomically(const std::filesystem::path& path, std::string_view text) {
  PendingFile file(path);
  file.write(text.data(), text.size(), 0);
  file.commit();
}

namespace {

std::filesystem::path pending_name(std::filesystem::path target) {
  target += ".tmp";
  return target;
}

}  // namespace

PendingFile::PendingFile(std::filesystem::path target, Writers writers)
    : target_(std::move(target)),
      file_(writers == Writers::one ? File::create(pending_name(target_))
                                    : File::create_locked(pending_name(target_))) {}

PendingFile::~PendingFile() {
  if (!committed_) ::unlink(file_.path().c_str());
}

void PendingFile::commit() {
  file_.sync();
  if (::rename(file_.path().c_str(), target_.c_str()) != 0) fail_io("rename to", target_);
  committed_ = true;
  file_.close();
  sync_folder(target_.has_parent_path() ? target_.parent_path() : ".");
}

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail_io("open folder", folder);
  const int status = ::fsync(descriptor);
  ::close(descriptor);
  if (status != 0 && errno != EINVAL) fail_io("fsync folder", folder);
}

void make_folders(const std::filesystem::path& folder) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  require(!code,
          code == std::errc::no_space_on_device ? ErrorKind::resource : ErrorKind::environment,
          "cannot create folder '{}': {}", folder.string(), code.message());
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail_io("open", path);
  struct stat info {};
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    if (errno == 0) errno = EINVAL;
    ::close(descriptor);
    fail_io("map", path);
  }
  size_ = static_cast<uint64_t>(info.st_size);
  if (size_ > 0) {
    void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapped == MAP_FAILED) {
      ::close(descriptor);
      fail_io("map", path);
    }
    data_ = static_cast<const uint8_t*>(mapped);
  }
  ::close(descriptor);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<uint8_t*>(data_), size_);
}

}  // namespace rankine

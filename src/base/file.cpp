#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/lock.h"
#include "base/temporary.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

std::string at_offset(uint64_t offset) {
  return fmt::format(" at offset {}", offset);
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISCHR(mode) || S_ISBLK(mode) ? "a device" : "something else";
}

void require_plain(mode_t mode, const fs::path& path) {
  require(S_ISREG(mode), ErrorKind::environment, "cannot read '{}': it is {}, not a file",
          path.string(), kind_of(mode));
}

// Of a plain file, without waiting for a writer or turning a device on.
int open_plain(const fs::path& path, struct stat& info) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0) {
    const int code = errno;
    if (code == ENXIO && ::stat(path.c_str(), &info) == 0) require_plain(info.st_mode, path);
    errno = code;
    fail_io("open", path);
  }
  const bool known = ::fstat(descriptor, &info) == 0;
  if (known && S_ISREG(info.st_mode)) return descriptor;
  const int code = errno;
  ::close(descriptor);
  if (known) require_plain(info.st_mode, path);
  errno = code;
  fail_io("stat", path);
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace

void fail_io(std::string_view action, const fs::path& path, std::string_view place) {
  const int code = errno;
  const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  fail(full ? ErrorKind::resource : ErrorKind::environment, "cannot {} '{}'{}: {}", action,
       path.string(), place, std::strerror(code));
}

ErrorKind kind_of(const std::system_error& error) {
  const int code = error.code().value();
  const bool lacking = code == ENOSPC || code == EDQUOT || code == EFBIG || code == EAGAIN ||
                       code == ENOMEM || code == EMFILE || code == ENFILE;
  return lacking ? ErrorKind::resource : ErrorKind::environment;
}

bool is_there(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0) return true;
  if (errno != ENOENT && errno != ENOTDIR) fail_io("reach", path);
  return false;
}

bool is_folder(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) return S_ISDIR(info.st_mode);
  if (errno != ENOENT && errno != ENOTDIR) fail_io("reach", path);
  return false;
}

File File::open_read(const fs::path& path) {
  struct stat info {};
  return {open_plain(path, info), path};
}

File File::create(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor < 0) fail_io("create", path);
  return {descriptor, path};
}

File File::create_temporary(const fs::path& target) {
  for (;;) {
    File file = create(temporary_name(target));
    // Who looked for left-overs may have seen it before it was held.
    await_lock(file.descriptor_);
    if (is_at(file.path_, file.descriptor_)) return file;
  }
}

File File::open_append(const fs::path& path) {
  const int descriptor =
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
  if (descriptor < 0) fail_io("open", path);
  return {descriptor, path};
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

void File::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail_io("write", path_);
    bytes.remove_prefix(static_cast<size_t>(put));
  }
}

void File::sync() {
  if (::fsync(descriptor_) != 0) fail_io("fsync", path_);
}

void File::close() {
  if (descriptor_ >= 0 && ::close(std::exchange(descriptor_, -1)) != 0) fail_io("close", path_);
}

std::string read_text(const fs::path& path, uint64_t limit) {
  const File file = File::open_read(path);
  const uint64_t bytes = file.size();
  require(bytes <= limit, ErrorKind::data, "'{}' has {} bytes, more than the {} allowed",
          path.string(), bytes, limit);
  std::string text(bytes, '\0');
  file.read(text.data(), bytes, 0);
  return text;
}

void write_text_atomically(const fs::path& path, std::string_view text) {
  PendingFile file(path);
  file.write(text.data(), text.size(), 0);
  file.commit();
}

PendingFile::PendingFile(fs::path target, Existing existing)
    : target_(std::move(target)),
      existing_(existing),
      file_((remove_abandoned(folder_of(target_)), File::create_temporary(target_))) {}

PendingFile::~PendingFile() {
  if (!committed_) ::unlink(file_.path().c_str());
}

void PendingFile::commit() {
  file_.sync();
  const char *from = file_.path().c_str(), *to = target_.c_str();
  const bool renamed = existing_ == Existing::replaced
                           ? ::rename(from, to) == 0
                           // A link is refused where the file system cannot rename so.
                           : ::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0 ||
                                 (errno == EINVAL && ::link(from, to) == 0 && ::unlink(from) == 0);
  if (!renamed) fail_io("rename to", target_);
  committed_ = true;
  file_.close();
  sync_folder(folder_of(target_));
}

void remove_whole(const fs::path& path) {
  const fs::path aside = temporary_name(path);
  if (::rename(path.c_str(), aside.c_str()) != 0) fail_io("remove", path);
  std::error_code code;
  fs::remove_all(aside, code);
  errno = code.value();
  if (code) fail_io("remove", aside);
}

void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail_io("open folder", folder);
  const int status = ::fsync(descriptor);
  ::close(descriptor);
  if (status != 0 && errno != EINVAL) fail_io("fsync folder", folder);
}

void make_folders(const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  errno = code.value();
  if (code) fail_io("create folder", folder);
}

MappedFile::MappedFile(const fs::path& path) {
  struct stat info {};
  const int descriptor = open_plain(path, info);
  size_ = static_cast<uint64_t>(info.st_size);
  void* mapped = nullptr;
  if (size_ > 0) mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int code = errno;
  ::close(descriptor);
  errno = code;
  if (mapped == MAP_FAILED) fail_io("map", path);
  data_ = static_cast<const uint8_t*>(mapped);
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

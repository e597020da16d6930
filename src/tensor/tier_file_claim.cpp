#include "tensor/tier_file_claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace rankine {
namespace {

bool is_tier_name(std::string_view name) {
  return name.starts_with("rankine-offload-") && name.ends_with(".tier") &&
         name.find('/') == std::string_view::npos;
}

int lock(int descriptor, int how) {
  int status = 0;
  do {
    status = ::flock(descriptor, how);
  } while (status != 0 && errno == EINTR);
  return status;
}

bool is_at(const std::filesystem::path& path, int descriptor) {
  struct stat there {
  }, here{};
  return ::lstat(path.c_str(), &there) == 0 && ::fstat(descriptor, &here) == 0 &&
         there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

// Held while files of the folder appear and vanish, so that who looks at one sees it with its lock.
class FolderLock {
 public:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {
    held_ = lock(descriptor_, LOCK_EX) == 0;
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() {
    if (held_) lock(descriptor_, LOCK_UN);
  }
  bool held() const { return held_; }

 private:
  int descriptor_;
  bool held_;
};

}  // namespace

FileClaim::FileClaim(const std::filesystem::path& folder, const std::string& name, uint64_t bytes)
    : folder_(folder), path_(folder / name), bytes_(bytes) {
  expect(is_tier_name(name), "a tier file is named rankine-offload-*.tier");
  expect(bytes > 0, "a tier file has a size");
  make_folders(folder_);
  try {
    folder_descriptor_ = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    require(folder_descriptor_ >= 0, ErrorKind::environment, "cannot open folder '{}': {}",
            folder_.string(), std::strerror(errno));
    {
      const FolderLock lock(folder_descriptor_);
      require(lock.held(), ErrorKind::environment, "cannot lock folder '{}': {}", folder_.string(),
              std::strerror(errno));
      remove_left_overs();
      take();
    }
    reserve();
  } catch (...) {
    remove();
    throw;
  }
}

FileClaim::~FileClaim() {
  remove();
}

void FileClaim::remove_left_overs() {
  std::error_code code;
  for (auto entry = std::filesystem::directory_iterator(folder_, code);
       !code && entry != std::filesystem::directory_iterator(); entry.increment(code)) {
    const std::filesystem::path& path = entry->path();
    if (!is_tier_name(path.filename().string())) continue;
    const int left = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (left < 0) continue;  // not ours to judge; a living owner's name is refused later
    struct stat info {};
    if (::fstat(left, &info) == 0 && S_ISREG(info.st_mode) && lock(left, LOCK_EX | LOCK_NB) == 0 &&
        ::unlink(path.c_str()) == 0)
      ++left_overs_removed_;
    ::close(left);
  }
}

void FileClaim::take() {
  const int opened = ::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  const int code = errno;
  require(opened >= 0,
          code == ENOSPC || code == EDQUOT ? ErrorKind::resource : ErrorKind::environment,
          "cannot create '{}': {}", path_.string(), std::strerror(code));
  if (lock(opened, LOCK_EX | LOCK_NB) == 0) {
    descriptor_ = opened;
    return;
  }
  const int refusal = errno;
  ::close(opened);
  require(refusal != EWOULDBLOCK, ErrorKind::environment,
          "'{}' is in use by another run: name another folder", path_.string());
  fail(ErrorKind::environment, "cannot lock '{}': {}", path_.string(), std::strerror(refusal));
}

void FileClaim::reserve() {
  struct statvfs space {};
  const bool known = ::fstatvfs(descriptor_, &space) == 0;
  const uint64_t free_bytes = known ? space.f_bfree * space.f_frsize : 0;
  int code = 0;
  // Asked beforehand, because reserving until nothing is left would disturb others for that while.
  if (known && free_bytes < bytes_) code = ENOSPC;
  if (code == 0) do {
      code = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes_));
    } while (code == EINTR);
  if (code == 0) return;
  const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  fail(
      full ? ErrorKind::resource : ErrorKind::environment,
      "cannot reserve {} for '{}': {}; its file system has {} free: name another folder or offload "
      "less",
      format_bytes(bytes_), path_.string(), std::strerror(code), format_bytes(free_bytes));
}

void FileClaim::remove() {
  if (descriptor_ >= 0) {
    const FolderLock lock(folder_descriptor_);
    // The name may be another's by now.
    if (is_at(path_, descriptor_)) ::unlink(path_.c_str());
    ::close(descriptor_);
  }
  if (folder_descriptor_ >= 0) ::close(folder_descriptor_);
}

}  // namespace rankine

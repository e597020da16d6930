#include "io/tier_file_claim.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary.h"
#include "base/text.h"

namespace rankine {

FileClaim::FileClaim(const std::filesystem::path& folder, const std::string& name, uint64_t bytes)
    : path_(folder / name), bytes_(bytes) {
  expect(bytes > 0, "a tier file has a size");
  make_folders(folder);
  take(folder);
  try {
    reserve();
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

FileClaim::~FileClaim() {
  ::close(descriptor_);
}

void FileClaim::take(const std::filesystem::path& folder) {
  descriptor_ = ::open(folder.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor_ >= 0) return;
  if (errno != EOPNOTSUPP && errno != EISDIR) fail_io("create", path_);
  // A file system without nameless files.
  const std::filesystem::path named = temporary_name(path_);
  descriptor_ = ::open(named.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor_ < 0) fail_io("create", path_);
  ::unlink(named.c_str());
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

}  // namespace rankine

#include "base/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/error.h"
#include "base/file.h"

namespace rankine {
namespace {

int lock(int descriptor, int how) {
  int status = 0;
  do {
    status = ::flock(descriptor, how);
  } while (status != 0 && errno == EINTR);
  return status;
}

// "process 12 on host", as a holder writes it; "" in a new file.
std::string holder_in(int descriptor) {
  std::array<char, 256> text{};
  const ssize_t bytes = ::pread(descriptor, text.data(), text.size() - 1, 0);
  const std::string said(text.data(), bytes > 0 ? static_cast<size_t>(bytes) : 0);
  return said.substr(0, said.find('\n'));
}

}  // namespace

Locked try_lock(int descriptor) {
  if (lock(descriptor, LOCK_EX | LOCK_NB) == 0) return Locked::taken;
  return errno == EWOULDBLOCK ? Locked::busy : Locked::unsupported;
}

bool await_lock(int descriptor) {
  return lock(descriptor, LOCK_EX) == 0;
}

bool is_at(const std::filesystem::path& path, int descriptor) {
  struct stat there {
  }, here{};
  return ::lstat(path.c_str(), &there) == 0 && ::fstat(descriptor, &here) == 0 &&
         there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

std::string host_label() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  std::string out(name.data());
  out = out.substr(0, 40);
  for (char& c : out)
    if (!isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-') c = '_';
  return out.empty() ? "unknown" : out;
}

LockFile::LockFile(const std::filesystem::path& file, const std::string& what,
                   const std::string& remedy)
    : path_(file) {
  for (;;) {
    descriptor_ =
        ::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    if (descriptor_ < 0) fail_io("create", path_);
    const Locked got = try_lock(descriptor_);
    works_ = got != Locked::unsupported;
    if (got == Locked::busy) {
      std::string holder = holder_in(descriptor_);
      if (holder.empty()) holder = "another process";
      ::close(descriptor_);
      fail(ErrorKind::environment, "{} is in use by {}; {}", what, holder, remedy);
    }
    // Its last holder may have removed it meanwhile.
    if (is_at(path_, descriptor_)) break;
    ::close(descriptor_);
  }
  const std::string before = holder_in(descriptor_);
  if (!before.empty() && !before.starts_with("process ")) {
    ::close(descriptor_);
    fail(ErrorKind::usage, "'{}' is there and is no lock of Rankine; move it away", path_.string());
  }
  const std::string holder = fmt::format("process {} on {}\n", ::getpid(), host_label());
  // Who cannot write it down holds it all the same.
  const bool said = ::ftruncate(descriptor_, 0) == 0 &&
                    ::pwrite(descriptor_, holder.data(), holder.size(), 0) > 0;
  static_cast<void>(said);
}

LockFile::~LockFile() {
  if (works_ && is_at(path_, descriptor_)) ::unlink(path_.c_str());
  ::close(descriptor_);
}

}  // namespace rankine

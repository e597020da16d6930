#include "checkpoint/pending_folder.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/file.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

fs::path with_suffix(fs::path path, const char* suffix) {
  path += suffix;
  return path;
}

void rename_folder(const fs::path& from, const fs::path& to) {
  require(::rename(from.c_str(), to.c_str()) == 0, ErrorKind::environment,
          "cannot rename '{}' to '{}': {}", from.string(), to.string(), std::strerror(errno));
}

void remove_folder(const fs::path& folder) {
  std::error_code code;
  fs::remove_all(folder, code);
  require(!code, ErrorKind::environment, "cannot remove '{}': {}", folder.string(), code.message());
}

}  // namespace

PendingFolder::PendingFolder(const fs::path& target)
    : target_(fs::absolute(target).lexically_normal()) {
  if (!target_.has_filename()) target_ = target_.parent_path();
  require(target_.has_filename(), ErrorKind::usage, "'{}' cannot be written as a folder",
          target.string());
  temporary_ = with_suffix(target_, ".tmp");
  remove_folder(temporary_);
  make_folders(temporary_);
}

PendingFolder::~PendingFolder() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(temporary_, ignored);
}

void PendingFolder::commit() {
  sync_folder(temporary_);
  if (!fs::exists(fs::symlink_status(target_))) {
    rename_folder(temporary_, target_);
  } else if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(),
                         RENAME_EXCHANGE) == 0) {
    remove_folder(temporary_);
  } else {
    // Some file systems cannot exchange names; a crash between the two renames leaves the old
    // folder complete under ".old".
    const fs::path old = with_suffix(target_, ".old");
    remove_folder(old);
    rename_folder(target_, old);
    rename_folder(temporary_, target_);
    remove_folder(old);
  }
  committed_ = true;
  sync_folder(target_.parent_path());
}

}  // namespace rankine

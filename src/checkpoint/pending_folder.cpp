#include "checkpoint/pending_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

void rename_folder(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail_io("rename to", to);
}

void remove_folder(const fs::path& folder) {
  std::error_code code;
  fs::remove_all(folder, code);
  errno = code.value();
  if (code) fail_io("remove", folder);
}

}  // namespace

PendingFolder::PendingFolder(const fs::path& target, Judge judge)
    : target_(fs::absolute(target).lexically_normal()), judge_(std::move(judge)) {
  if (!target_.has_filename()) target_ = target_.parent_path();
  require(target_.has_filename(), ErrorKind::usage, "'{}' cannot be written as a folder",
          target.string());
  judge_target();
  make_folders(target_.parent_path());
  remove_abandoned(target_.parent_path());
  const std::string maker = maker_of(target_);
  require(maker.empty(), ErrorKind::environment,
          "'{}' is in use: {} is writing it; wait for its end, or choose another folder",
          target_.string(), maker);
  descriptor_ = make_temporary_folder(target_, temporary_);
}

PendingFolder::~PendingFolder() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(temporary_, ignored);
  if (descriptor_ >= 0) ::close(descriptor_);
}

void PendingFolder::judge_target() const {
  if (!is_there(target_)) return;
  require(fs::is_directory(fs::symlink_status(target_)), ErrorKind::usage,
          "'{}' exists and is not a folder", target_.string());
  judge_(target_);
}

void PendingFolder::commit() {
  sync_folder(temporary_);
  judge_target();
  if (!is_there(target_)) {
    rename_folder(temporary_, target_);
  } else if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(),
                         RENAME_EXCHANGE) == 0) {
    remove_folder(temporary_);
  } else {
    // Some file systems cannot exchange names; a crash between the two renames leaves the old
    // folder complete under its temporary name.
    const fs::path old = temporary_name(target_);
    rename_folder(target_, old);
    rename_folder(temporary_, target_);
    remove_folder(old);
  }
  committed_ = true;
  sync_folder(target_.parent_path());
}

}  // namespace rankine

#pragma once
#include <filesystem>
#include <functional>

// A folder that appears complete or not at all: filled under a temporary name beside its target
// (base/temporary.h) and renamed at the end.
namespace rankine {

class PendingFolder {
 public:
  // Says whether a folder that is there may go; throws when it may not.
  using Judge = std::function<void(const std::filesystem::path& there)>;
  // Error{environment} when another process is making the target.
  PendingFolder(const std::filesystem::path& target, Judge judge);
  PendingFolder(const PendingFolder&) = delete;
  PendingFolder& operator=(const PendingFolder&) = delete;
  ~PendingFolder();  // removes the temporary folder unless committed

  const std::filesystem::path& path() const { return temporary_; }
  // fsync, rename to the target (an existing one is judged again, exchanged in one step and then
  // removed), fsync of the parent.
  void commit();

 private:
  void judge_target() const;

  std::filesystem::path target_, temporary_;
  Judge judge_;
  int descriptor_ = -1;
  bool committed_ = false;
};

}  // namespace rankine

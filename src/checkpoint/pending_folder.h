#pragma once
#include <filesystem>

// A folder that appears complete or not at all: filled under a temporary name beside its target
// and renamed at the end.
namespace rankine {

class PendingFolder {
 public:
  // Makes "<target>.tmp", removing what an interrupted run left there.
  explicit PendingFolder(const std::filesystem::path& target);
  PendingFolder(const PendingFolder&) = delete;
  PendingFolder& operator=(const PendingFolder&) = delete;
  ~PendingFolder();  // removes the temporary folder unless committed

  const std::filesystem::path& path() const { return temporary_; }
  // fsync, rename to the target (an existing one is exchanged in one step and then removed), fsync
  // of the parent.
  void commit();

 private:
  std::filesystem::path target_, temporary_;
  bool committed_ = false;
};

}  // namespace rankine

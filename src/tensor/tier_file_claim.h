#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

// A file that is this object's alone: locked, all its bytes reserved, removed at the end. Files of
// the pattern rankine-offload-*.tier without a living owner are left-overs and removed.
namespace rankine {

class FileClaim {
 public:
  // Makes folder/name, of the pattern above. Error{resource} when `bytes` do not fit,
  // Error{environment} when the folder cannot be used or another owner holds the file.
  FileClaim(const std::filesystem::path& folder, const std::string& name, uint64_t bytes);
  ~FileClaim();
  FileClaim(const FileClaim&) = delete;
  FileClaim& operator=(const FileClaim&) = delete;

  int descriptor() const { return descriptor_; }
  const std::filesystem::path& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }
  int left_overs_removed() const { return left_overs_removed_; }

 private:
  void remove_left_overs();
  void take();
  void reserve();
  void remove();

  std::filesystem::path folder_, path_;
  uint64_t bytes_;
  int folder_descriptor_ = -1, descriptor_ = -1, left_overs_removed_ = 0;
};

}  // namespace rankine

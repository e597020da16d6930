#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

// A file without a name that is this object's alone, all its bytes reserved: it ends with the
// process, however that ends, and nothing that lies in the folder is ever touched.
namespace rankine {

class FileClaim {
 public:
  // In `folder`, which is made when missing; messages call it folder/name. Error{resource} when
  // `bytes` do not fit, Error{environment} when the folder cannot be used.
  FileClaim(const std::filesystem::path& folder, const std::string& name, uint64_t bytes);
  ~FileClaim();
  FileClaim(const FileClaim&) = delete;
  FileClaim& operator=(const FileClaim&) = delete;

  int descriptor() const { return descriptor_; }
  const std::filesystem::path& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }

 private:
  void take(const std::filesystem::path& folder);
  void reserve();

  std::filesystem::path path_;
  uint64_t bytes_;
  int descriptor_ = -1;
};

}  // namespace rankine

#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

// Files with errors that carry path, reason and offset. All failures throw Error{environment}, or
// Error{resource} for a full disk.
namespace rankine {

// An open file descriptor. Reads and writes are positioned; a short read is an error.
class File {
 public:
  static File open_read(const std::filesystem::path& path);
  static File create(const std::filesystem::path& path);  // truncates
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  uint64_t size() const;
  const std::filesystem::path& path() const { return path_; }
  void read(void* into, uint64_t bytes, uint64_t offset) const;
  void write(const void* from, uint64_t bytes, uint64_t offset);
  void sync();   // fsync
  void close();  // reports what the kernel only says at close

 private:
  File(int descriptor, std::filesystem::path path)
      : descriptor_(descriptor), path_(std::move(path)) {}
  int descriptor_ = -1;
  std::filesystem::path path_;
};

// A whole file as bytes. Refuses files over `limit`.
std::string read_text(const std::filesystem::path& path, uint64_t limit = uint64_t{1} << 32);
// Write to a temporary name beside it, fsync, rename: readers see the old file or the new one.
void write_text_atomically(const std::filesystem::path& path, std::string_view text);
// fsync of a folder, so that renames in it are durable.
void sync_folder(const std::filesystem::path& folder);
void make_folders(const std::filesystem::path& folder);

// A file mapped read-only for as long as this object lives.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  const uint8_t* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  const uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace rankine

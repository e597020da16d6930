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
  // As create, but first waits until no other process holds the file as its own; it is held until
  // it is closed.
  static File create_locked(const std::filesystem::path& path);
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

// A file that appears complete or not at all: written as "<target>.tmp" and renamed at the end.
// What a killed writer left is overwritten.
class PendingFile {
 public:
  enum class Writers : uint8_t { one, several };  // several wait for each other, by a lock
  explicit PendingFile(std::filesystem::path target, Writers writers = Writers::one);
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile();  // removes it unless committed

  const std::filesystem::path& target() const { return target_; }
  void write(const void* from, uint64_t bytes, uint64_t offset) {
    file_.write(from, bytes, offset);
  }
  void commit();  // fsync, rename, fsync of the folder

 private:
  std::filesystem::path target_;
  File file_;
  bool committed_ = false;
};

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

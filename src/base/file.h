#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "base/error.h"

// Files with errors that carry path, reason and offset. All failures throw Error{environment}, or
// Error{resource} for a full disk.
namespace rankine {

// "cannot <action> '<path>'<place>: <errno's text>", {resource} for a full disk.
[[noreturn]] void fail_io(std::string_view action, const std::filesystem::path& path,
                          std::string_view place = "");
// The same kinds, of an error that the standard library throws.
ErrorKind kind_of(const std::system_error& error);
// Whether something has this name, be it a link that leads nowhere. Error{environment} when that
// cannot be known.
bool is_there(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);  // or a link to one; errors likewise

// An open file descriptor. Reads and writes are positioned; a short read is an error.
class File {
 public:
  // Plain files alone: a folder, FIFO, socket or device is refused at once.
  static File open_read(const std::filesystem::path& path);
  static File create(const std::filesystem::path& path);  // which must be absent
  // A new one with a temporary name beside `target`, held until it is closed (base/temporary.h).
  static File create_temporary(const std::filesystem::path& target);
  static File open_append(const std::filesystem::path& path);  // made when absent
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  uint64_t size() const;
  const std::filesystem::path& path() const { return path_; }
  void read(void* into, uint64_t bytes, uint64_t offset) const;
  void write(const void* from, uint64_t bytes, uint64_t offset);
  void append(std::string_view bytes);  // behind the end
  void sync();                          // fsync
  void close();                         // reports what the kernel only says at close

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

// Removes a file or folder with all it holds, in one step as seen by others.
void remove_whole(const std::filesystem::path& path);

// A file that appears complete or not at all: written under a temporary name beside it and renamed
// at the end. What dead writers left beside it is removed.
class PendingFile {
 public:
  enum class Existing : uint8_t { replaced, refused };  // a target that is there at the end
  explicit PendingFile(std::filesystem::path target, Existing existing = Existing::replaced);
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
  Existing existing_;
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

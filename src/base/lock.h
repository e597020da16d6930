#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

// Advisory locks of open files and folders. They end with the process that holds them, however it
// ends, and hold between hosts where the file system carries them.
namespace rankine {

enum class Locked : uint8_t { taken, busy, unsupported };

Locked try_lock(int descriptor);  // for this open file alone
bool await_lock(int descriptor);  // sleeps until it is taken; false where there are no locks
// Whether the name leads to the very file that is open there.
bool is_at(const std::filesystem::path& path, int descriptor);
std::string host_label();  // letters, digits, '.', '_' and '-'; at most 40

// A lock with a file that names its holder, for as long as this object lives; then the file goes.
class LockFile {
 public:
  // Error{environment} "<what> is in use by process 12 on host; <remedy>" when another holds it.
  LockFile(const std::filesystem::path& file, const std::string& what, const std::string& remedy);
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;
  ~LockFile();
  bool works() const { return works_; }  // false where the file system has no locks

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  bool works_ = true;
};

}  // namespace rankine

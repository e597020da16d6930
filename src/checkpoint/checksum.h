#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>

struct XXH3_state_s;

// The 64-bit XXH3 checksum of bytes that arrive in pieces.
namespace rankine {

class Checksum {
 public:
  Checksum();
  void update(const void* data, size_t bytes);
  uint64_t value() const;  // of all bytes so far

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

class File;
uint64_t file_checksum(const File& file);  // of a whole file

}  // namespace rankine

#pragma once
#include <algorithm>
#include <cstdint>
#include <string>

#include "data/byte_stream.h"

namespace rankine::test {

// Bytes in memory as a stream that gives a few of them at a time.
class MemoryStream final : public ByteStream {
 public:
  explicit MemoryStream(std::string bytes) : bytes_(std::move(bytes)) {}
  size_t read(char* into, size_t bytes) override {
    const size_t some = bytes_.copy(into, std::min<size_t>(bytes, 61), at_);
    at_ += some;
    return some;
  }
  uint64_t position() const override { return at_; }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

}  // namespace rankine::test

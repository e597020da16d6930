#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "data/byte_stream.h"

// Any bytes as gzip and as Zstandard data: either Error{data}, or an end.
namespace {

class MemoryStream final : public rankine::ByteStream {
 public:
  explicit MemoryStream(std::string_view bytes) : bytes_(bytes) {}
  size_t read(char* into, size_t bytes) override {
    const size_t some = bytes_.copy(into, std::min<size_t>(bytes, 61), at_);
    at_ += some;
    return some;
  }
  uint64_t position() const override { return at_; }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

void read_all(std::string_view bytes, rankine::Compression compression) {
  char buffer[4096];
  uint64_t total = 0;
  try {
    const auto stream =
        rankine::decompressed(std::make_unique<MemoryStream>(bytes), compression, "input");
    while (const size_t got = stream->read(buffer, sizeof(buffer))) {
      if (got > sizeof(buffer) || stream->position() > bytes.size()) __builtin_trap();
      if ((total += got) > 64 << 20) return;  // what inflates that much is no fault
    }
  } catch (const rankine::Error& error) {
    if (error.kind() != rankine::ErrorKind::data) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read_all(bytes, rankine::Compression::gzip);
  read_all(bytes, rankine::Compression::zstd);
  return 0;
}

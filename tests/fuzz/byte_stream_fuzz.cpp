#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "support/memory_stream.h"

// Any bytes as gzip and as Zstandard data: either Error{data}, or an end.
namespace {

void read_all(std::string_view bytes, rankine::Compression compression) {
  char buffer[4096];
  uint64_t total = 0;
  try {
    const auto stream = rankine::decompressed(
        std::make_unique<rankine::test::MemoryStream>(std::string(bytes)), compression, "input");
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

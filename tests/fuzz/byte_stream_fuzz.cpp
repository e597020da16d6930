#include <zstd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "support/compressed.h"
#include "support/memory_stream.h"

// Gzip and Zstandard data, any bytes and damaged frames: either Error{data}, or an end; frames that
// are not damaged give their text.
namespace {

using rankine::Compression;

// What could be read; `whole` says whether the end was reached.
std::string read_all(const std::string& bytes, Compression compression, bool& whole) {
  char buffer[4096];
  std::string text;
  whole = false;
  try {
    const auto stream = rankine::decompressed(std::make_unique<rankine::test::MemoryStream>(bytes),
                                              compression, "input");
    while (const size_t got = stream->read(buffer, sizeof(buffer))) {
      if (got > sizeof(buffer) || stream->position() > bytes.size()) __builtin_trap();
      text.append(buffer, got);
      if (text.size() > 1 << 20) return text;  // what inflates that much is no fault
    }
    whole = true;
  } catch (const rankine::Error& error) {
    if (error.kind() != rankine::ErrorKind::data) __builtin_trap();
  }
  return text;
}

std::string frame(std::string_view text, Compression compression) {
  if (compression == Compression::gzip) return rankine::test::gzip(text);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 1));
  return out;
}

}  // namespace

// The first byte chooses: bytes as they are, or frames of the text behind the next four, which say
// how many frames, and where and how one byte of them is changed or the rest cut off.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  bool whole = false;
  if (size < 5 || data[0] % 4 == 0) {
    read_all(std::string(bytes), Compression::gzip, whole);
    read_all(std::string(bytes), Compression::zstd, whole);
    return 0;
  }
  const Compression compression = data[0] % 2 == 0 ? Compression::gzip : Compression::zstd;
  const std::string_view text = bytes.substr(5);
  std::string frames, texts;
  for (int i = 0; i <= data[1] % 3; ++i) {
    frames += frame(text, compression);
    texts += text;
  }
  const size_t place = (data[2] << 8 | data[3]) % (frames.size() + 1);
  const bool cut = data[0] % 8 > 4;
  if (cut)
    frames.resize(place);
  else if (place < frames.size())
    frames[place] = static_cast<char>(frames[place] ^ data[4]);
  const bool damaged = cut || (place < frames.size() && data[4] != 0);
  const std::string read = read_all(frames, compression, whole);
  if (!damaged && (!whole || read != texts)) __builtin_trap();
  return 0;
}

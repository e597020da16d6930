#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

// The bytes of a file from its beginning to its end, compressed or not. Memory is bounded whatever
// the size. Damage throws Error{data} with the file and the place.
namespace rankine {

enum class Compression : uint8_t { none, gzip, zstd };

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Up to `bytes` > 0 next ones; 0 only at the end.
  virtual size_t read(char* into, size_t bytes) = 0;
  // Bytes of the file that were read so far.
  virtual uint64_t position() const = 0;
};

// What a compressed file may become: its size times this, or the first 64 MiB when that is less.
constexpr double usual_expansion = 200;

// Error{data} once a compressed file has become more than `most_expansion` allows.
std::unique_ptr<ByteStream> open_stream(const std::filesystem::path& path, Compression compression,
                                        double most_expansion = usual_expansion);
// What `compressed` holds; gzip of several members and Zstandard of several frames are one text.
std::unique_ptr<ByteStream> decompressed(std::unique_ptr<ByteStream> compressed,
                                         Compression compression, std::string name);

}  // namespace rankine

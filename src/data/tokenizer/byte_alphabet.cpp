#include "data/tokenizer/byte_alphabet.h"

#include "data/tokenizer/unicode.h"

namespace rankine {
namespace {

// The byte that a code point below U+0144 stands for, or -1.
constexpr size_t points_end = 256 + 68;

std::array<int, points_end> bytes_of_points() {
  std::array<int, points_end> bytes{};
  bytes.fill(-1);
  const auto alphabet = byte_alphabet();
  for (size_t byte = 0; byte < 256; ++byte) bytes[alphabet[byte]] = static_cast<int>(byte);
  return bytes;
}

}  // namespace

std::array<uint32_t, 256> byte_alphabet() {
  std::array<uint32_t, 256> points{};
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    points[byte] = printable ? byte : next++;
  }
  return points;
}

std::string to_printable(std::string_view bytes) {
  static const std::array<uint32_t, 256> alphabet = byte_alphabet();
  std::string out;
  for (const char byte : bytes) append_utf8(alphabet[static_cast<uint8_t>(byte)], out);
  return out;
}

std::optional<std::string> from_printable(std::string_view text) {
  static const std::array<int, points_end> bytes = bytes_of_points();
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const TextChar c = first_char(text.substr(at));
    if (!c.valid || c.point >= points_end || bytes[c.point] < 0) return std::nullopt;
    out += static_cast<char>(bytes[c.point]);
    at += c.bytes;
  }
  return out;
}

}  // namespace rankine

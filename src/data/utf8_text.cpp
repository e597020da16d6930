#include "data/utf8_text.h"

#include <simdjson.h>

#include <algorithm>

namespace rankine {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

struct Sequence {
  size_t bytes;  // of the character, or of the ill-formed piece
  bool valid;
};

// What begins at byte `at`: Unicode's table of well-formed sequences.
Sequence sequence_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  const uint8_t least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i) {
    const bool there = at + i < text.size() && byte(i) >= (i == 1 ? least : 0x80) &&
                       byte(i) <= (i == 1 ? most : 0xBF);
    if (!there) return {i, false};
  }
  return {length, true};
}

}  // namespace

std::string_view valid_utf8(std::string_view text, std::string& buffer, uint64_t& replaced) {
  if (simdjson::validate_utf8(text.data(), text.size())) return text;
  buffer.clear();
  for (size_t at = 0; at < text.size();) {
    const auto [bytes, valid] = sequence_at(text, at);
    buffer.append(valid ? text.substr(at, bytes) : replacement);
    replaced += valid ? 0 : 1;
    at += bytes;
  }
  return buffer;
}

}  // namespace rankine

#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

// Text as code points. Any bytes are accepted: a byte that belongs to no valid UTF-8 sequence
// stands for itself, as a character of class `other`.
namespace rankine {

enum class CharClass : uint8_t { other, letter, number, space };

struct TextChar {
  uint32_t point;  // meaningless when not valid
  uint8_t bytes;   // 1..4
  bool valid;
};

// The character at the beginning of `text`, which must not be empty.
TextChar first_char(std::string_view text);
// \p{L}, \p{N}, White_Space, or none of them.
CharClass class_of(uint32_t point);
// Whether a regular expression's \w takes it.
bool is_word_char(uint32_t point);
void append_utf8(uint32_t point, std::string& out);
// Bytes at the end of `text` that begin a UTF-8 sequence which more bytes could complete; 0..3.
size_t incomplete_tail(std::string_view text);
// The canonical composition (NFC) of `text`, invalid bytes left alone: `text` itself when nothing
// changes, else a view of `buffer`.
std::string_view compose(std::string_view text, std::string& buffer);

struct ClassAt {
  CharClass kind;
  uint8_t bytes;
};

constexpr CharClass ascii_class(uint8_t byte) {
  if (byte == ' ' || (byte >= 9 && byte <= 13)) return CharClass::space;
  if (byte >= '0' && byte <= '9') return CharClass::number;
  const uint8_t lower = byte | 0x20;
  return lower >= 'a' && lower <= 'z' ? CharClass::letter : CharClass::other;
}

constexpr std::array<CharClass, 128> ascii_classes = [] {
  std::array<CharClass, 128> table{};
  for (uint8_t byte = 0; byte < 128; ++byte) table[byte] = ascii_class(byte);
  return table;
}();

ClassAt class_beyond_ascii(std::string_view text);

// Class and length of the character at byte `at`, which must lie within `text`.
inline ClassAt class_at(std::string_view text, size_t at) {
  const auto byte = static_cast<uint8_t>(text[at]);
  if (byte < 128) return {ascii_classes[byte], 1};
  return class_beyond_ascii(text.substr(at));
}

}  // namespace rankine

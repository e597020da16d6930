#include "template/lexer_text.h"

#include <fmt/core.h>

#include "template/text_units.h"

namespace rankine {
namespace {

bool is_plain_digit(char sign) {
  return sign >= '0' && sign <= '9';
}

int digit_value(char sign) {
  if (is_plain_digit(sign)) return sign - '0';
  if (sign >= 'a' && sign <= 'f') return sign - 'a' + 10;
  if (sign >= 'A' && sign <= 'F') return sign - 'A' + 10;
  return 99;
}

// The end of digits with single underscores between them, from `at` on; `at` where there are none.
size_t digits_end(std::string_view text, size_t at, int base) {
  size_t end = at;
  for (size_t next = at; next < text.size(); ++next) {
    if (text[next] == '_' && next > at && end == next) continue;
    if (digit_value(text[next]) >= base) break;
    end = next + 1;
  }
  return end;
}

// The end of a number with fraction or exponent, or 0.
size_t real_end(std::string_view text) {
  size_t end = digits_end(text, 0, 10);
  bool real = false;
  if (end + 1 < text.size() && text[end] == '.' && is_plain_digit(text[end + 1])) {
    end = digits_end(text, end + 1, 10);
    real = true;
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    size_t exponent = end + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
    if (exponent < text.size() && is_plain_digit(text[exponent])) {
      end = digits_end(text, exponent, 10);
      real = true;
    }
  }
  return real ? end : 0;
}

size_t integer_end(std::string_view text) {
  if (text[0] == '0' && text.size() > 2) {
    const char mark = static_cast<char>(text[1] | 0x20);
    const int base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    const size_t from = text[2] == '_' ? 3 : 2;
    if (base != 0 && digits_end(text, from, base) > from) return digits_end(text, from, base);
  }
  return digits_end(text, 0, text[0] == '0' ? 1 : 10);
}

constexpr std::string_view plain_escapes = "abfnrtv\\'\"";
constexpr std::string_view plain_meanings = "\a\b\f\n\r\t\v\\'\"";

}  // namespace

std::string with_plain_line_ends(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n') continue;
    plain.push_back(text[at] == '\r' ? '\n' : text[at]);
  }
  if (!plain.empty() && plain.back() == '\n') plain.pop_back();
  return plain;
}

bool only_space(std::string_view text) {
  return !text.empty() && without_end_space(text).empty();
}

std::string_view without_end_space(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    const size_t before = character_before(text, end);
    if (!is_space(character_at(text, before).code)) break;
    end = before;
  }
  return text.substr(0, end);
}

size_t block_end(std::string_view source, size_t at) {
  if (source.substr(at, 3) == "+%}") return at + 3;
  if (source.substr(at, 2) == "%}") return at + 2 + (source.substr(at + 2, 1) == "\n" ? 1 : 0);
  if (source.substr(at, 3) != "-%}") return 0;
  size_t end = at + 3;
  while (end < source.size() && is_space(character_at(source, end).code))
    end += character_at(source, end).bytes;
  return end;
}

size_t print_end(std::string_view source, size_t at) {
  if (source.substr(at, 2) == "}}") return at + 2;
  if (source.substr(at, 3) != "-}}") return 0;
  size_t end = at + 3;
  while (end < source.size() && is_space(character_at(source, end).code))
    end += character_at(source, end).bytes;
  return end;
}

NumberText number_text(std::string_view text, bool behind_dot) {
  NumberText number{"", behind_dot ? 0 : real_end(text), true};
  if (number.bytes == 0) number = {"", integer_end(text), false};
  for (const char sign : text.substr(0, number.bytes))
    if (sign != '_') number.digits.push_back(sign);
  return number;
}

bool unescape(std::string_view written, std::string& said, std::string& fault) {
  for (size_t at = 0; at < written.size(); ++at) {
    if (written[at] != '\\') {
      said.push_back(written[at]);
      continue;
    }
    const char escape = written[++at];
    const size_t plain = plain_escapes.find(escape);
    const size_t length = escape == 'x' ? 2 : escape == 'u' ? 4 : escape == 'U' ? 8 : 0;
    if (escape == '\n') continue;
    if (plain != std::string_view::npos) {
      said.push_back(plain_meanings[plain]);
    } else if (escape >= '0' && escape <= '7') {
      char32_t code = 0;
      size_t end = at;
      for (; end < at + 3 && end < written.size() && written[end] >= '0' && written[end] <= '7';
           ++end)
        code = code * 8 + static_cast<char32_t>(written[end] - '0');
      append_character(said, code);
      at = end - 1;
    } else if (length > 0) {
      char32_t code = 0;
      for (size_t i = 1; i <= length; ++i) {
        const int digit = at + i < written.size() ? digit_value(written[at + i]) : 99;
        if (digit > 15) {
          fault = fmt::format("\\{} needs {} hexadecimal digits", escape, length);
          return false;
        }
        code = code * 16 + static_cast<char32_t>(digit);
      }
      if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
        fault =
            fmt::format("\\{}{:0{}x} is no character", escape, static_cast<uint32_t>(code), length);
        return false;
      }
      append_character(said, code);
      at += length;
    } else if (escape == 'N') {
      fault = "characters by name (\\N{...}) are not read; write them themselves or with \\u";
      return false;
    } else if (static_cast<uint8_t>(escape) >= 0x80) {
      // Python's reading by way of ASCII: the backslash stays, the character becomes its number.
      const Character character = character_at(written, at);
      const auto code = static_cast<uint32_t>(character.code);
      said += code < 0x100     ? fmt::format("\\x{:02x}", code)
              : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                               : fmt::format("\\U{:08x}", code);
      at += character.bytes - 1;
    } else {
      said.push_back('\\');
      said.push_back(escape);
    }
  }
  return true;
}

}  // namespace rankine

#include "base/toml.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

namespace rankine {
namespace {

bool is_key_character(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '_' ||
         c == '-';
}

bool is_number_character(char c) {
  return is_key_character(c) || c == '.' || c == '+';
}

// A number by its first character, or one of TOML's words.
bool is_plain_value(std::string_view value) {
  if (value == "true" || value == "false") return true;
  if (value.starts_with('+') || value.starts_with('-')) value.remove_prefix(1);
  return value == "inf" || value == "nan" || value.find_first_of(".0123456789") == 0;
}

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
}

void append_utf8(std::string& out, uint32_t code) {
  const auto byte = [&](uint32_t value) { out += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | (code >> 6));
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | (code >> 12));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | (code >> 18));
    byte(0x80 | ((code >> 12) & 0x3F));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

class TomlReader {
 public:
  explicit TomlReader(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  TomlText read() {
    while (at_ < text_.size()) {
      const int line = line_;
      TomlEntry entry;
      entry.line = line;
      if (!read_line(entry)) {
        out_.faults.push_back({line_, fault_});
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (!entry.key.empty()) {
        out_.entries.push_back(std::move(entry));
      }
      if (at_ < text_.size()) ++at_;
      ++line_;
    }
    return std::move(out_);
  }

 private:
  bool wrong(std::string what) {
    fault_ = std::move(what);
    return false;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\n'; }

  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') ++at_;
    if (peek() == '#')
      while (peek() != '\n') ++at_;
    if (peek() == '\r' && (at_ + 1 >= text_.size() || text_[at_ + 1] == '\n')) ++at_;
  }

  // Up to, not including, the end of the line; an empty line leaves the key empty.
  bool read_line(TomlEntry& entry) {
    skip_blanks();
    if (peek() == '\n') return true;
    if (peek() == '[')
      return wrong("sections are not used; write every option as a line 'name = value'");
    const size_t start = at_;
    while (is_key_character(peek())) ++at_;
    entry.key = text_.substr(start, at_ - start);
    skip_blanks();
    if (entry.key.empty() || peek() != '=') return wrong("not a line of the form 'name = value'");
    ++at_;
    skip_blanks();
    if (peek() == '\n') return wrong(fmt::format("{} has no value", entry.key));
    if (peek() == '[' ? !read_array(entry) : !read_value(entry)) return false;
    skip_blanks();
    if (peek() != '\n') return wrong(fmt::format("text after the value of {}", entry.key));
    return true;
  }

  bool read_array(TomlEntry& entry) {
    entry.is_array = true;
    ++at_;
    bool may_follow = true;
    while (skip_lines()) {
      if (peek() == ']') {
        ++at_;
        return true;
      }
      if (!may_follow) return wrong(fmt::format("a ',' is missing in the list {}", entry.key));
      if (!read_value(entry)) return false;
      may_follow = skip_lines() && peek() == ',';
      if (may_follow) ++at_;
    }
    return wrong(fmt::format("the list {} is not closed by ']'", entry.key));
  }

  // False at the end of the text.
  bool skip_lines() {
    for (skip_blanks(); at_ < text_.size() && peek() == '\n'; skip_blanks()) {
      ++at_;
      ++line_;
    }
    return at_ < text_.size();
  }

  bool read_value(TomlEntry& entry) {
    std::string value;
    if (peek() == '"' || peek() == '\'') {
      const char quote = peek();
      if (text_.substr(at_).starts_with(std::string(3, quote)))
        return wrong("multi-line strings are not supported; write \"...\" with \\n");
      ++at_;
      if (!(quote == '"' ? read_basic(value) : read_literal(value))) return false;
    } else {
      const size_t start = at_;
      while (is_number_character(peek())) ++at_;
      value = text_.substr(start, at_ - start);
      if (!is_plain_value(value))
        return wrong(
            fmt::format("the value of {} is no number, true or false; texts need quotes, "
                        "as in {} = \"...\"",
                        entry.key, entry.key));
    }
    entry.values.push_back(std::move(value));
    return true;
  }

  bool read_literal(std::string& value) {
    while (peek() != '\'') {
      if (is_control(peek())) return wrong("a string is not closed by '");
      value += text_[at_++];
    }
    ++at_;
    return true;
  }

  bool read_basic(std::string& value) {
    while (peek() != '"') {
      if (is_control(peek())) return wrong("a string is not closed by \"");
      if (peek() == '\\') {
        ++at_;
        if (!read_escape(value)) return false;
      } else {
        value += text_[at_++];
      }
    }
    ++at_;
    return true;
  }

  bool read_escape(std::string& value) {
    const char kind = peek();
    constexpr std::string_view letters = "btnfr\"\\", meanings = "\b\t\n\f\r\"\\";
    if (const size_t i = letters.find(kind); i != std::string_view::npos) {
      value += meanings[i];
      ++at_;
      return true;
    }
    const size_t digits = kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    uint32_t code = 0;
    for (size_t i = 1; i <= digits; ++i) {
      const char c = at_ + i < text_.size() ? text_[at_ + i] : '\n';
      constexpr std::string_view hex = "0123456789abcdef";
      const size_t digit = hex.find('A' <= c && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
      if (digit == std::string_view::npos) return wrong("\\u needs 4 hexadecimal digits, \\U 8");
      code = code * 16 + static_cast<uint32_t>(digit);
    }
    if (digits == 0) return wrong("unknown escape in a string; write \\\\ for a backslash");
    if (code > 0x10FFFF || (0xD800 <= code && code < 0xE000))
      return wrong("an escape in a string is no Unicode character");
    append_utf8(value, code);
    at_ += digits + 1;
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  std::string fault_;
  TomlText out_;
};

}  // namespace

TomlText read_toml(std::string_view text) {
  return TomlReader(text).read();
}

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (is_control(c) || c == '\t')
      out += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}

}  // namespace rankine

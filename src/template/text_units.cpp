#include "template/text_units.h"

#include <utf8proc.h>

#include <algorithm>

#include "template/text_cases.h"

namespace rankine {
namespace {

utf8proc_category_t category(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

char32_t simple_lower(char32_t code) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
}

void append_special(std::string& to, const char32_t (&codes)[3]) {
  for (const char32_t code : codes)
    if (code != 0) append_character(to, code);
}

bool is_cased(char32_t code) {
  return is_upper(code) || is_lower(code) || is_titlecase(code);
}

// Marks and the like, which a word's end does not care for.
bool is_case_ignorable(char32_t code) {
  const utf8proc_category_t kind = category(code);
  return code == '\'' || code == '.' || code == ':' || code == '^' || code == '`' || code == 0xB7 ||
         code == 0x2019 || kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_ME ||
         kind == UTF8PROC_CATEGORY_CF || kind == UTF8PROC_CATEGORY_LM ||
         kind == UTF8PROC_CATEGORY_SK;
}

// A capital sigma at `at` ends its word.
bool ends_word(std::string_view text, size_t at) {
  size_t before = at;
  bool cased = false;
  while (before > 0 && !cased) {
    before = character_before(text, before);
    const char32_t code = character_at(text, before).code;
    if (is_case_ignorable(code)) continue;
    if (!is_cased(code)) return false;
    cased = true;
  }
  if (!cased) return false;
  for (size_t next = at + character_at(text, at).bytes; next < text.size();) {
    const Character character = character_at(text, next);
    if (!is_case_ignorable(character.code)) return !is_cased(character.code);
    next += character.bytes;
  }
  return true;
}

}  // namespace

Character character_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const uint8_t lead = byte(0);
  const size_t length = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (length == 1 || at + length > text.size() || lead > 0xF4) return {lead, 1};
  char32_t code = lead & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {lead, 1};
    code = (code << 6) | (byte(i) & 0x3F);
  }
  return {code, length};
}

size_t character_before(std::string_view text, size_t at) {
  size_t begin = at - 1;
  while (begin > 0 && at - begin < 4 && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
  return begin + character_at(text, begin).bytes == at ? begin : at - 1;
}

size_t character_count(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<uint8_t>(byte) & 0xC0) != 0x80;
  }));
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char byte) { return byte >= 0; });
}

void append_character(std::string& text, char32_t code) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
}

bool is_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 ||
         code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
         code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_line_end(char32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
         code == 0x2028 || code == 0x2029;
}

bool is_letter(char32_t code) {
  if (code < 0x80) return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z');
  const utf8proc_category_t kind = category(code);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_digit(char32_t code) {
  if (code < 0x80) return code >= '0' && code <= '9';
  return category(code) == UTF8PROC_CATEGORY_ND || code == 0xB2 || code == 0xB3 || code == 0xB9 ||
         code == 0x2070 || (code >= 0x2074 && code <= 0x2079) ||
         (code >= 0x2080 && code <= 0x2089) || (code >= 0x2460 && code <= 0x2468);
}

bool is_numeric(char32_t code) {
  const utf8proc_category_t kind = category(code);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_NO;
}

bool is_word(char32_t code) {
  return code == '_' || is_letter(code) || is_numeric(code);
}
bool is_upper(char32_t code) {
  return code < 0x80 ? code >= 'A' && code <= 'Z' : category(code) == UTF8PROC_CATEGORY_LU;
}
bool is_lower(char32_t code) {
  return code < 0x80 ? code >= 'a' && code <= 'z'
                     : category(code) == UTF8PROC_CATEGORY_LL || code == 0xAA || code == 0xBA;
}
bool is_titlecase(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LT;
}

bool is_printable(char32_t code) {
  if (code < 0x80) return code >= 0x20 && code < 0x7F;
  switch (category(code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

void append_upper(std::string& to, char32_t code) {
  if (code < 0x80) {
    to.push_back(static_cast<char>(code >= 'a' && code <= 'z' ? code - 32 : code));
  } else if (const SpecialCase* special = special_case(code)) {
    append_special(to, special->upper);
  } else {
    append_character(to,
                     static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code))));
  }
}

void append_title(std::string& to, char32_t code) {
  if (const SpecialCase* special = special_case(code)) {
    append_special(to, special->title);
  } else {
    append_character(to,
                     static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code))));
  }
}

void append_lower(std::string& to, std::string_view text, size_t at) {
  const char32_t code = character_at(text, at).code;
  if (code == 0x130) {
    to.append("i\xCC\x87");
  } else if (code == 0x3A3) {
    append_character(to, ends_word(text, at) ? 0x3C2 : 0x3C3);
  } else {
    append_character(to, simple_lower(code));
  }
}

}  // namespace rankine

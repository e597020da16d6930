#include "data/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/error.h"
#include "data/tokenizer/unicode_versions.h"

namespace rankine {
namespace {

uint8_t byte_at(std::string_view text, size_t at) {
  return static_cast<uint8_t>(text[at]);
}

// How long a sequence with this first byte is; 0: none begins with it.
size_t sequence_bytes(uint8_t first) {
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;
  if (first < 0xE0) return 2;
  if (first < 0xF0) return 3;
  return first < 0xF5 ? 4 : 0;
}

// The second byte decides about overlong forms, surrogates and points past U+10FFFF.
bool is_second(uint8_t first, uint8_t second) {
  const uint8_t least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const uint8_t most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  return second >= least && second <= most;
}

bool is_tail_of(std::string_view sequence) {
  for (size_t i = 1; i < sequence.size(); ++i)
    if (i == 1 ? !is_second(byte_at(sequence, 0), byte_at(sequence, 1))
               : (byte_at(sequence, i) & 0xC0) != 0x80)
      return false;
  return true;
}

// Points that compose with nothing before them and are composed already, in the blocks most text
// is made of: what lies outside is looked at closely, not wrong.
bool is_surely_composed(uint32_t point) {
  return point < 0x300 || (point >= 0x400 && point < 0x483) ||
         (point >= 0x2010 && point < 0x2028) || (point >= 0x3001 && point < 0x302A) ||
         (point >= 0x3041 && point < 0x3097) || (point >= 0x30A1 && point < 0x30FB) ||
         (point >= 0x3400 && point < 0xA48D) || (point >= 0xAC00 && point < 0xD7A4) ||
         (point >= 0xFF01 && point < 0xFF5F) || (point >= 0x1F300 && point < 0x1FB00);
}

void append_composed(std::string_view valid, std::string& out) {
  if (valid.empty()) return;
  struct Free {
    void operator()(uint8_t* bytes) const { std::free(bytes); }
  };
  utf8proc_uint8_t* mapped = nullptr;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const utf8proc_ssize_t bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(valid.data()),
                   static_cast<utf8proc_ssize_t>(valid.size()), &mapped, options);
  const std::unique_ptr<uint8_t, Free> owned(mapped);
  require(bytes >= 0, ErrorKind::resource, "cannot normalise {} bytes of text: {}", valid.size(),
          utf8proc_errmsg(bytes));
  out.append(reinterpret_cast<const char*>(mapped), static_cast<size_t>(bytes));
}

// Composes one by one the stretches of `run` between what stays as it is.
void append_run(std::string_view run, std::string& out) {
  size_t begin = 0;
  for (size_t at = 0; at < run.size();) {
    const TextChar c = first_char(run.substr(at));
    if (!c.valid || composes_after_unicode_9(c.point)) {
      append_composed(run.substr(begin, at - begin), out);
      out += run.substr(at, c.bytes);
      begin = at + c.bytes;
    }
    at += c.bytes;
  }
  append_composed(run.substr(begin), out);
}

CharClass class_of(NewChar kind) {
  if (kind == NewChar::letter) return CharClass::letter;
  return kind == NewChar::number ? CharClass::number : CharClass::other;
}

}  // namespace

TextChar first_char(std::string_view text) {
  const uint8_t first = byte_at(text, 0);
  const size_t bytes = sequence_bytes(first);
  if (bytes == 1) return {first, 1, true};
  if (bytes == 0 || bytes > text.size() || !is_tail_of(text.substr(0, bytes))) return {0, 1, false};
  uint32_t point = first & (0x7FU >> bytes);
  for (size_t i = 1; i < bytes; ++i) point = point << 6 | (byte_at(text, i) & 0x3FU);
  return {point, static_cast<uint8_t>(bytes), true};
}

CharClass class_of(uint32_t point) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharClass::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharClass::number;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return CharClass::space;
    case UTF8PROC_CATEGORY_CN:
      return class_of(added_after_unicode_15(point));
    default:
      return point == 0x85 || (point >= 9 && point <= 13) ? CharClass::space : CharClass::other;
  }
}

bool is_word_char(uint32_t point) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(point))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    case UTF8PROC_CATEGORY_SO:  // circled and squared letters are Other_Alphabetic
      return (point >= 0x24B6 && point <= 0x24E9) || (point >= 0x1F130 && point <= 0x1F149) ||
             (point >= 0x1F150 && point <= 0x1F169) || (point >= 0x1F170 && point <= 0x1F189);
    case UTF8PROC_CATEGORY_CN:
      return added_after_unicode_15(point) != NewChar::none;
    default:
      return point == 0x200C || point == 0x200D || class_of(point) == CharClass::letter;
  }
}

void append_utf8(uint32_t point, std::string& out) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(point), bytes.data());
  out.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(count));
}

size_t incomplete_tail(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const std::string_view tail = text.substr(text.size() - back);
    const size_t wanted = sequence_bytes(byte_at(tail, 0));
    if (wanted > back && is_tail_of(tail)) return back;
    if (wanted != 0) return 0;
  }
  return 0;
}

std::string_view compose(std::string_view text, std::string& buffer) {
  bool changed = false;
  size_t done = 0;  // bytes of `text` that are in `buffer`
  for (size_t at = 0; at < text.size();) {
    if (byte_at(text, at) < 0x80) {
      ++at;
      continue;
    }
    const TextChar c = first_char(text.substr(at));
    if (!c.valid || is_surely_composed(c.point)) {
      at += c.bytes;
      continue;
    }
    // ASCII begins anew, so a run from one ASCII character to the next stands alone.
    size_t begin = at, end = at;
    while (begin > done && byte_at(text, begin) >= 0x80) --begin;
    while (end < text.size() && byte_at(text, end) >= 0x80) ++end;
    if (!changed) buffer.clear();
    changed = true;
    buffer.append(text.substr(done, begin - done));
    append_run(text.substr(begin, end - begin), buffer);
    done = at = end;
  }
  if (!changed) return text;
  buffer.append(text.substr(done));
  return buffer;
}

ClassAt class_beyond_ascii(std::string_view text) {
  const TextChar c = first_char(text);
  return {c.valid ? class_of(c.point) : CharClass::other, c.bytes};
}

}  // namespace rankine

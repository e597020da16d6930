#include "data/tokenizer/split_pattern.h"

#include <array>
#include <utility>

#include "data/tokenizer/unicode.h"

namespace rankine {
namespace {

using enum CharClass;

constexpr std::array<std::pair<SplitPattern, std::string_view>, 3> regexes{{
    {SplitPattern::gpt2,
     R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {SplitPattern::llama3,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
     R"(\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {SplitPattern::qwen,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
     R"(\s*[\r\n]+|\s+(?!\S)|\s+)"},
}};

bool is_newline(char c) {
  return c == '\r' || c == '\n';
}

// Where the run of characters of this class that begins at `at` ends.
size_t run_end(std::string_view text, size_t at, CharClass kind) {
  while (at < text.size()) {
    const ClassAt c = class_at(text, at);
    if (c.kind != kind) break;
    at += c.bytes;
  }
  return at;
}

// 's 't 're 've 'm 'll 'd at `at`, which is a "'": its bytes, or 0.
size_t contraction_bytes(std::string_view text, size_t at, bool any_case) {
  const auto letter = [&](size_t i) -> char {
    if (at + i >= text.size()) return 0;
    const char c = text[at + i];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  };
  const char first = letter(1), second = letter(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (second == 'e' && (first == 'r' || first == 'v')) return 3;
  if (first == 'l' && second == 'l') return 3;
  // The long s, U+017F, is an s without regard to case.
  return any_case && text.substr(at + 1).starts_with("\xC5\xBF") ? 3 : 0;
}

// \s+(?!\S)|\s+: the last white space before a word is left to that word's own beginning.
size_t white_space_end(std::string_view text, size_t at) {
  size_t end = at, last = at;
  while (end < text.size()) {
    const ClassAt c = class_at(text, end);
    if (c.kind != space) return last > at ? last : end;
    last = end;
    end += c.bytes;
  }
  return end;
}

// \s*[\r\n]+: the end of the last line end in the white space at `at`, or `at`.
size_t lines_end(std::string_view text, size_t at) {
  size_t end = at;
  for (size_t i = at; i < text.size();) {
    const ClassAt c = class_at(text, i);
    if (c.kind != space) break;
    i += c.bytes;
    if (is_newline(text[i - 1])) end = i;
  }
  return end;
}

size_t gpt2_end(std::string_view text, size_t at) {
  if (text[at] == '\'')
    if (const size_t bytes = contraction_bytes(text, at, false); bytes > 0) return at + bytes;
  const size_t begin = text[at] == ' ' && at + 1 < text.size() ? at + 1 : at;
  const ClassAt c = class_at(text, begin);
  if (c.kind == space) return white_space_end(text, at);
  return run_end(text, begin + c.bytes, c.kind);
}

size_t numbers_end(std::string_view text, size_t at, int most) {
  for (int i = 0; i < most && at < text.size(); ++i) {
    const ClassAt c = class_at(text, at);
    if (c.kind != number) break;
    at += c.bytes;
  }
  return at;
}

// Llama 3 and Qwen differ in how many digits a word takes.
size_t llama_end(std::string_view text, size_t at, int most_digits) {
  if (text[at] == '\'')
    if (const size_t bytes = contraction_bytes(text, at, true); bytes > 0) return at + bytes;
  const ClassAt c = class_at(text, at);
  const size_t next = at + c.bytes;
  if (c.kind == letter) return run_end(text, next, letter);
  if (c.kind == number) return numbers_end(text, at, most_digits);
  const ClassAt after = next < text.size() ? class_at(text, next) : ClassAt{space, 0};
  if (after.kind == letter && !is_newline(text[at]))
    return run_end(text, next + after.bytes, letter);
  if (c.kind == other || (text[at] == ' ' && after.kind == other)) {
    size_t end = run_end(text, next, other);
    while (end < text.size() && is_newline(text[end])) ++end;
    return end;
  }
  const size_t lines = lines_end(text, at);
  return lines > at ? lines : white_space_end(text, at);
}

}  // namespace

std::string_view pattern_regex(SplitPattern pattern) {
  return regexes[static_cast<size_t>(pattern)].second;
}

std::optional<SplitPattern> find_pattern(std::string_view regex) {
  for (const auto& [pattern, text] : regexes)
    if (text == regex) return pattern;
  return std::nullopt;
}

size_t word_bytes(SplitPattern pattern, std::string_view text, size_t at) {
  switch (pattern) {
    case SplitPattern::gpt2:
      return gpt2_end(text, at) - at;
    case SplitPattern::llama3:
      return llama_end(text, at, 3) - at;
    case SplitPattern::qwen:
      break;
  }
  return llama_end(text, at, 1) - at;
}

}  // namespace rankine

#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "template/render_state.h"

// Python's operations on texts; every character keeps its origin.
namespace rankine {

struct StripSides {
  bool begin = true, end = true;
};
// Without the characters of `from`, white space where there is none, at its sides.
MarkedText stripped(const MarkedText& text, const std::optional<std::string>& from,
                    StripSides sides = {});
// split and rsplit: at white space where there is no separator, which is not empty; -1: no limit.
struct SplitAt {
  std::optional<std::string> separator;
  int64_t most = -1;
  bool from_end = false;
};
std::vector<MarkedText> split(const MarkedText& text, const SplitAt& at);
std::vector<MarkedText> lines_of(const MarkedText& text, bool keep_ends);
struct Replacement {
  const std::string& old_text;
  const MarkedText& new_text;
  int64_t most = -1;
};
MarkedText replaced(RenderState& state, const MarkedText& text, const Replacement& replacement);

MarkedText upper_case(const MarkedText& text);
MarkedText lower_case(const MarkedText& text);
MarkedText capitalized(const MarkedText& text);
MarkedText title_case(const MarkedText& text);         // str.title()
MarkedText words_capitalized(const MarkedText& text);  // the filter title

// `before` and `after` times `sign`, which is one character, around the text.
struct Padding {
  size_t before = 0, after = 0;
  MarkedText sign;
};
MarkedText padded(RenderState& state, const MarkedText& text, const Padding& padding);
// In one piece, with `between` between the parts.
MarkedText joined(RenderState& state, const std::vector<MarkedText>& parts,
                  const MarkedText& between);
// The same characters in the opposite order.
MarkedText backwards(const MarkedText& text);

// Byte of the first (last) `wanted` in bytes [begin, end), or npos.
size_t find_first(std::string_view text, std::string_view wanted, size_t begin, size_t end);
size_t find_last(std::string_view text, std::string_view wanted, size_t begin, size_t end);
// Byte of character `index`, text.size() beyond the end.
size_t byte_of(std::string_view text, size_t index);

}  // namespace rankine

#pragma once
#include <string>
#include <string_view>

// How Jinja reads the pieces of a template's text.
namespace rankine {

// \r\n and \r made \n; one at the very end dropped.
std::string with_plain_line_ends(std::string_view text);
bool only_space(std::string_view text);  // at least one character of white space and nothing else
std::string_view without_end_space(std::string_view text);
// The byte behind the %} (-%} with the space behind it, %} with one newline, +%}) that begins at
// `at`; 0 where none does. print_end is the same of }} and -}}.
size_t block_end(std::string_view source, size_t at);
size_t print_end(std::string_view source, size_t at);

struct NumberText {
  std::string digits;  // without underscores
  size_t bytes;
  bool real;
};
// The number that `text` begins with; behind a dot no real number can begin.
NumberText number_text(std::string_view text, bool behind_dot);

// What stands between quotes, with Python's escapes read; false and `fault` for a bad one.
bool unescape(std::string_view written, std::string& said, std::string& fault);

}  // namespace rankine

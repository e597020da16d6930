#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Characters of UTF-8 text, as Python counts and classifies them.
namespace rankine {

struct Character {
  char32_t code;
  size_t bytes;  // what it takes, at least 1; ill-formed bytes count one by one
};

Character character_at(std::string_view text, size_t at);
// Begin of the character before `at`, which is greater than 0.
size_t character_before(std::string_view text, size_t at);
size_t character_count(std::string_view text);
bool is_ascii(std::string_view text);
void append_character(std::string& text, char32_t code);

bool is_space(char32_t code);
bool is_line_end(char32_t code);  // where splitlines cuts; \r\n counts once
bool is_letter(char32_t code);
bool is_digit(char32_t code);
bool is_numeric(char32_t code);
bool is_word(char32_t code);  // \w
bool is_upper(char32_t code);
bool is_lower(char32_t code);
bool is_titlecase(char32_t code);
bool is_printable(char32_t code);

// What becomes of the character at `at`, one character or several.
void append_upper(std::string& to, char32_t code);
void append_title(std::string& to, char32_t code);
void append_lower(std::string& to, std::string_view text, size_t at);

}  // namespace rankine

#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "template/render_state.h"

namespace rankine {

enum class TokenKind : uint8_t {
  data,         // text of the template
  print_begin,  // {{
  print_end,
  block_begin,  // {%
  block_end,
  name,
  text,  // a string
  integer,
  real,
  sign,  // an operator or a bracket
  end
};

struct Token {
  TokenKind kind = TokenKind::end;
  Place place;
  std::string text;  // of a number its digits, of a string what it says
  bool is(TokenKind of, std::string_view what) const { return kind == of && text == what; }
  bool is_sign(std::string_view what) const { return is(TokenKind::sign, what); }
  bool is_name(std::string_view what) const { return is(TokenKind::name, what); }
};

// The template's tokens, an end among them; comments left out, white space trimmed around blocks,
// line ends made \n, the last one dropped. Error{data} with `name` and the place.
std::vector<Token> template_tokens(std::string_view text, const std::string& name);

}  // namespace rankine

#include "template/lexer.h"

#include <algorithm>
#include <array>

#include "template/lexer_text.h"
#include "template/text_units.h"

namespace rankine {
namespace {

constexpr size_t most_bytes = 256 << 10;  // of a template; published ones take 20 KiB at most

class Lexer {
 public:
  Lexer(std::string source, const std::string& name) : source_(std::move(source)), name_(name) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) read_data();
    push(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail_at(Place place, const std::string& what) const {
    throw Error(ErrorKind::data, located(name_, place, what));
  }
  bool follows(std::string_view what) const { return source_.compare(at_, what.size(), what) == 0; }
  char sign_at(size_t at) const { return at < source_.size() ? source_[at] : '\0'; }
  void push(TokenKind kind, std::string text) {
    tokens_.push_back({kind, place_, std::move(text)});
  }

  // Goes on to byte `to`, counting lines and columns.
  void advance(size_t to) {
    line_starting_ = to > at_ && source_[to - 1] == '\n';
    for (; at_ < to; ++at_) {
      if (source_[at_] == '\n')
        place_ = {place_.line + 1, 1};
      else if ((static_cast<uint8_t>(source_[at_]) & 0xC0) != 0x80)
        ++place_.column;
    }
  }
  void skip_space() {
    size_t to = at_;
    while (to < source_.size() && is_space(character_at(source_, to).code))
      to += character_at(source_, to).bytes;
    if (to > at_) advance(to);
  }
  size_t past_space(size_t at) const {
    while (at < source_.size() && is_space(character_at(source_, at).code))
      at += character_at(source_, at).bytes;
    return at;
  }

  void read_data();
  void push_data(size_t begin, size_t end, Place place, bool strip_line);
  bool read_raw(size_t tag);
  void read_comment(Place begin);
  void read_tag(bool block);
  bool read_tag_end(bool block);
  void read_expression_token();
  void read_number();
  void read_string();
  bool read_name();
  void read_sign();

  std::string source_;
  const std::string& name_;
  size_t at_ = 0;
  Place place_;
  bool line_starting_ = true;
  std::vector<char> open_;  // the brackets that wait for their closing ones
  std::vector<Token> tokens_;
};

// Begin of the next {{ {% {#, or the end.
size_t next_tag(std::string_view source, size_t at) {
  for (; (at = source.find('{', at)) != std::string_view::npos; ++at) {
    const char next = at + 1 < source.size() ? source[at + 1] : '\0';
    if (next == '{' || next == '%' || next == '#') return at;
  }
  return source.size();
}

void Lexer::push_data(size_t begin, size_t end, Place place, bool strip_line) {
  std::string_view text = std::string_view(source_).substr(begin, end - begin);
  if (strip_line) {
    const size_t line = text.rfind('\n') + 1;  // 0 where there is none
    if ((line > 0 || line_starting_) && only_space(text.substr(line))) text = text.substr(0, line);
  }
  if (!text.empty()) tokens_.push_back({TokenKind::data, place, std::string(text)});
}

// Template text up to the next tag, and the tag.
void Lexer::read_data() {
  const size_t begin = at_, tag = next_tag(source_, at_);
  const Place place = place_;
  const bool starting = line_starting_;
  if (tag == source_.size()) {
    push_data(begin, tag, place, false);
    return advance(tag);
  }
  const char control = sign_at(tag + 2);
  const bool print = source_[tag + 1] == '{';
  size_t end = tag;
  if (control == '-')
    end = begin + without_end_space(std::string_view(source_).substr(begin, tag - begin)).size();
  advance(tag);
  line_starting_ = starting;
  push_data(begin, end, place, !print && control != '-' && control != '+');
  if (read_raw(tag)) return;
  const char kind = source_[tag + 1];
  const Place tag_place = place_;
  advance(tag + (control == '-' || control == '+' ? 3 : 2));
  if (kind == '#') return read_comment(tag_place);
  tokens_.push_back({print ? TokenKind::print_begin : TokenKind::block_begin, tag_place, ""});
  read_tag(!print);
}

// {% raw %} up to its end, as text.
bool Lexer::read_raw(size_t tag) {
  const std::string_view source = source_;
  if (source[tag + 1] != '%') return false;
  size_t at = tag + 2;
  if (sign_at(at) == '-' || sign_at(at) == '+') ++at;
  at = past_space(at);
  if (source.substr(at, 3) != "raw") return false;
  at = past_space(at + 3);
  const bool strips = source.substr(at, 3) == "-%}";
  if (!strips && source.substr(at, 2) != "%}") return false;
  const Place raw_place = place_;
  advance(strips ? past_space(at + 3) : at + 2);
  for (size_t end = at_; (end = source.find("{%", end)) != std::string_view::npos; ++end) {
    size_t next = end + 2;
    const char control = sign_at(next);
    if (control == '-' || control == '+') ++next;
    next = past_space(next);
    if (source.substr(next, 6) != "endraw") continue;
    next = past_space(next + 6);
    const size_t stop = block_end(source, next);
    if (stop == 0) continue;
    const size_t stripped =
        control == '-' ? at_ + without_end_space(source.substr(at_, end - at_)).size() : end;
    push_data(at_, stripped, place_, control != '-' && control != '+');
    advance(stop);
    return true;
  }
  fail_at(raw_place, "a raw block without its end");
}

void Lexer::read_comment(Place begin) {
  const size_t end = source_.find("#}", at_);
  if (end == std::string::npos) fail_at(begin, "a comment without its end");
  size_t stop = end + 2;
  if (end > at_ && source_[end - 1] == '-')
    stop = past_space(stop);
  else if (!(end > at_ && source_[end - 1] == '+') && sign_at(stop) == '\n')
    ++stop;
  advance(stop);
}

void Lexer::read_tag(bool block) {
  open_.clear();
  const Place begin = tokens_.back().place;
  while (true) {
    if (open_.empty() && read_tag_end(block)) return;
    skip_space();
    if (open_.empty() && read_tag_end(block)) return;
    if (at_ >= source_.size())
      fail_at(begin, block ? "a block without its %}" : "no }} follows this {{");
    read_expression_token();
  }
}

bool Lexer::read_tag_end(bool block) {
  const Place place = place_;
  const size_t stop = block ? block_end(source_, at_) : print_end(source_, at_);
  if (stop == 0) return false;
  tokens_.push_back({block ? TokenKind::block_end : TokenKind::print_end, place, ""});
  advance(stop);
  return true;
}

void Lexer::read_expression_token() {
  const char sign = source_[at_];
  if (sign >= '0' && sign <= '9') return read_number();
  if (sign == '\'' || sign == '"') return read_string();
  if (!read_name()) read_sign();
}

void Lexer::read_number() {
  const bool behind_dot = at_ > 0 && source_[at_ - 1] == '.';
  const NumberText number = number_text(std::string_view(source_).substr(at_), behind_dot);
  push(number.real ? TokenKind::real : TokenKind::integer, number.digits);
  advance(at_ + number.bytes);
}

void Lexer::read_string() {
  const char quote = source_[at_];
  size_t end = at_ + 1;
  while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
  if (end >= source_.size()) fail_at(place_, "a text without its closing quote");
  std::string said, fault;
  if (!unescape(std::string_view(source_).substr(at_ + 1, end - at_ - 1), said, fault))
    fail_at(place_, fault);
  push(TokenKind::text, std::move(said));
  advance(end + 1);
}

bool Lexer::read_name() {
  size_t end = at_;
  while (end < source_.size()) {
    const Character character = character_at(source_, end);
    if (!is_word(character.code)) break;
    end += character.bytes;
  }
  if (end == at_) return false;
  push(TokenKind::name, source_.substr(at_, end - at_));
  advance(end);
  return true;
}

void Lexer::read_sign() {
  constexpr std::array<std::string_view, 27> signs = {
      "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]",
      "(",  ")",  "{",  "}",  ">",  "<",  "=", ".", ":", "|", ",", ";", ""};
  const auto* sign = std::find_if(signs.begin(), signs.end() - 1,
                                  [&](std::string_view candidate) { return follows(candidate); });
  if (sign->empty())
    fail_at(place_, fmt::format("unexpected character '{}'",
                                source_.substr(at_, character_at(source_, at_).bytes)));
  const char first = (*sign)[0];
  if (first == '(' || first == '[' || first == '{') {
    open_.push_back(first == '(' ? ')' : first == '[' ? ']' : '}');
  } else if (first == ')' || first == ']' || first == '}') {
    if (open_.empty()) fail_at(place_, fmt::format("unexpected '{}'", first));
    if (open_.back() != first)
      fail_at(place_, fmt::format("unexpected '{}', expected '{}'", first, open_.back()));
    open_.pop_back();
  }
  push(TokenKind::sign, std::string(*sign));
  advance(at_ + sign->size());
}

}  // namespace

std::vector<Token> template_tokens(std::string_view text, const std::string& name) {
  require(text.size() <= most_bytes, ErrorKind::data,
          "'{}': a template of {} bytes; at most {} are read", name, text.size(), most_bytes);
  return Lexer(with_plain_line_ends(text), name).run();
}

}  // namespace rankine

#include "data/tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/tokenizer/unicode.h"

namespace rankine {
namespace {

uint64_t edge(uint32_t node, char byte) {
  return static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(byte);
}

// The character that ends at byte `end` > 0.
TextChar last_char(std::string_view text, size_t end) {
  for (size_t bytes = 2; bytes <= 4 && bytes <= end; ++bytes) {
    const TextChar c = first_char(text.substr(end - bytes, bytes));
    if (c.valid && c.bytes == bytes) return c;
  }
  return first_char(text.substr(end - 1, 1));
}

bool is_word(const TextChar& c) {
  return c.valid && is_word_char(c.point);
}

bool is_space(const TextChar& c) {
  return c.valid && class_of(c.point) == CharClass::space;
}

bool is_white_space(std::string_view text) {
  for (size_t at = 0; at < text.size(); at += first_char(text.substr(at)).bytes)
    if (!is_space(first_char(text.substr(at)))) return false;
  return true;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const std::vector<std::string>& contents)
    : tokens_(std::move(tokens)), token_at_(1, -1) {
  expect(tokens_.size() == contents.size(), "every added token has its text");
  for (size_t i = 0; i < contents.size(); ++i) {
    tokens_[i].white_space = !tokens_[i].special && is_white_space(tokens_[i].content);
    has_white_space_ = has_white_space_ || tokens_[i].white_space;
    uint32_t node = 0;
    for (const char byte : contents[i]) {
      const auto [at, is_new] =
          edges_.try_emplace(edge(node, byte), static_cast<uint32_t>(token_at_.size()));
      if (is_new) token_at_.push_back(-1);
      node = at->second;
    }
    if (node == 0) continue;
    token_at_[node] = static_cast<int32_t>(i);
    begins_[static_cast<uint8_t>(contents[i][0])] = true;
  }
}

bool AddedTokens::loses_white_space() const {
  return std::any_of(tokens_.begin(), tokens_.end(), [](const AddedToken& token) {
    return token.white_space && (token.takes_left || token.takes_right);
  });
}

AddedTokens::Match AddedTokens::find(std::string_view text, size_t from) const {
  if (edges_.empty()) return {};
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!begins_[static_cast<uint8_t>(text[begin])]) continue;
    Match longest;
    uint32_t node = 0;
    for (size_t at = begin; at < text.size(); ++at) {
      const auto next = edges_.find(edge(node, text[at]));
      if (next == edges_.end()) break;
      node = next->second;
      if (token_at_[node] >= 0)
        longest = {&tokens_[static_cast<size_t>(token_at_[node])], begin, at + 1};
    }
    if (longest.token != nullptr) return longest;
  }
  return {};
}

std::optional<AddedTokens::Found> AddedTokens::first(std::string_view text) const {
  for (size_t at = 0; at < text.size();) {
    const Match match = find(text, at);
    if (match.token == nullptr) break;
    if (!match.token->white_space) return Found{match.token->id, match.begin, match.end};
    at = match.end;
  }
  return std::nullopt;
}

AddedTokens::Match AddedTokens::widen(Match match, std::string_view text, size_t done) {
  const AddedToken& token = *match.token;
  if (token.single_word) {
    const bool after_word = match.begin > 0 && is_word(last_char(text, match.begin));
    const bool before_word = match.end < text.size() && is_word(first_char(text.substr(match.end)));
    if (after_word || before_word) return {};
  }
  if (token.takes_left) {
    while (match.begin > done) {
      const TextChar c = last_char(text, match.begin);
      if (!is_space(c)) break;
      match.begin -= c.bytes;
    }
    match.begin = std::max(match.begin, done);
  }
  if (token.takes_right)
    while (match.end < text.size()) {
      const TextChar c = first_char(text.substr(match.end));
      if (!is_space(c)) break;
      match.end += c.bytes;
    }
  return match;
}

}  // namespace rankine

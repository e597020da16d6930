#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

// Tokens that are found in text as they stand, before anything else happens to it: "<|endoftext|>",
// "<think>". The longest one at the leftmost place wins.
namespace rankine {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;        // steers the model and is no part of the text
  bool single_word = false;    // not between word characters
  bool takes_left = false;     // with the white space to its left ("lstrip")
  bool takes_right = false;    // and to its right ("rstrip")
  bool in_normalized = false;  // looked for after normalisation, not before
  bool white_space = false;    // an ordinary token for a run of white space
};

class AddedTokens {
 public:
  AddedTokens() = default;
  // `contents[i]` is what tokens[i] looks like in text.
  AddedTokens(std::vector<AddedToken> tokens, const std::vector<std::string>& contents);

  // The first one in the text that is no white space, by its bytes; nothing when there is none.
  struct Found {
    int32_t id = 0;
    size_t begin = 0, end = 0;
  };
  std::optional<Found> first(std::string_view text) const;
  // Whether white space around tokens for white space is lost.
  bool loses_white_space() const;

  // Calls on_text(piece) and on_token(token) from left to right; pieces are not empty. Without
  // `parse` all of them but white space are plain text: what a document says steers nothing.
  template <class OnText, class OnToken>
  void split(std::string_view text, bool parse, OnText&& on_text, OnToken&& on_token) const {
    if (!parse && !has_white_space_) {
      if (!text.empty()) on_text(text);
      return;
    }
    split_where(
        text, [&](const AddedToken& token, size_t, size_t) { return parse || token.white_space; },
        on_text, [&](const AddedToken& token, size_t) { on_token(token); });
  }

  // The same with the tokens that allowed(token, begin, end) takes, and on_token(token, begin).
  template <class Allowed, class OnText, class OnToken>
  void split_where(std::string_view text, Allowed&& allowed, OnText&& on_text,
                   OnToken&& on_token) const {
    size_t done = 0;
    for (size_t at = 0; at < text.size();) {
      const Match match = find(text, at);
      if (match.token == nullptr) break;
      at = match.end;
      if (!allowed(*match.token, match.begin, match.end)) continue;
      const Match whole = widen(match, text, done);
      if (whole.token == nullptr) continue;
      if (whole.begin > done) on_text(text.substr(done, whole.begin - done));
      // The next one may lie in the white space that this one takes; nothing of it may be left.
      if (whole.begin < whole.end) on_token(*whole.token, match.begin);
      done = whole.end;
    }
    if (done < text.size()) on_text(text.substr(done));
  }

 private:
  struct Match {
    const AddedToken* token = nullptr;
    size_t begin = 0, end = 0;
  };
  Match find(std::string_view text, size_t from) const;
  // With the white space it takes; no token when it is not a word of its own.
  static Match widen(Match match, std::string_view text, size_t done);

  std::vector<AddedToken> tokens_;
  bool has_white_space_ = false;
  // A trie of all contents: from (node, byte) to node; the root is 0.
  std::unordered_map<uint64_t, uint32_t> edges_;
  std::vector<int32_t> token_at_;  // of each node: an index, or -1
  std::vector<bool> begins_ = std::vector<bool>(256, false);
};

}  // namespace rankine

#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/tokenizer/json_place.h"

// From tokens back to text, one token at a time. Bytes that form no character come out as they
// are; nothing is replaced.
namespace rankine {

class TextDecoder {
 public:
  TextDecoder() = default;
  // The "decoder" of tokenizer.json: ByteLevel, Metaspace, or a sequence of Replace of strings,
  // ByteFallback, Fuse and Strip.
  explicit TextDecoder(const JsonPlace& place);

  bool by_bytes() const { return by_bytes_; }  // ByteLevel: tokens are their text already

  // What was decoded so far, as far as the next token depends on it.
  struct State {
    bool began = false;     // there was a token
    int64_t stripped = 0;   // characters taken off the beginning of the whole text
    bool stripping = true;  // nothing else has come yet
  };
  void append(std::string_view token, State& state, std::string& out) const;

 private:
  struct Strip {
    std::string content;
    int64_t most = 0;  // at the beginning
  };
  void read(const JsonPlace& place);
  void read_metaspace(JsonMembers& members);
  void read_strip(JsonMembers& members);

  bool by_bytes_ = false, byte_tokens_ = false, fused_ = false;
  std::vector<std::pair<std::string, std::string>> replacements_;
  std::string dropped_from_first_;  // Metaspace: not a space in the first token
  Strip of_text_, of_token_;
};

// The byte of "<0x0A>", or -1.
int byte_of_token(std::string_view token);

}  // namespace rankine

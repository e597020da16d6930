#pragma once
#include <span>
#include <string>
#include <vector>

#include "data/tokenizer/bpe_tokenizer.h"

namespace rankine {

// The text of tokens as they come, up to the first stop text. Rule: it depends on the text alone,
// not on how tokens cut it. What is given out never ends within a character, and never with what
// may turn out to be the beginning of a stop text.
class TextStream {
 public:
  // Text behind that of the tokens `before`, which begins with a space where it is a new word.
  // Special tokens are left out of it. A stop text is looked for in what is given out; one that
  // spells a special token, in the text with special tokens spelled. `tokenizer` outlives the
  // stream.
  TextStream(const BpeTokenizer& tokenizer, const std::vector<std::string>& stops,
             std::span<const int32_t> before = {});

  std::string push(int32_t id);  // the text that is certain now; may be empty
  // Whether a stop text has come; it is not given out, nor is what comes behind it. The one that
  // was complete first counts, of several the longest.
  bool stopped() const { return stopped_; }
  // What was held back, without the beginning of a character that never ended.
  std::string finish();
  // Behind finish(): that beginning, whose tokens were written too.
  const std::string& unfinished() const { return unfinished_; }

 private:
  void add(std::string_view text, bool is_shown);
  void find_end();
  size_t shown_in(size_t spelled_bytes) const;
  size_t held_bytes();

  const BpeTokenizer& tokenizer_;
  StreamDecoder decoder_;
  std::vector<std::string> plain_stops_, spelled_stops_;
  std::string shown_;                // not given out yet
  std::string spelled_;              // with special tokens, as far as stop texts may need it
  std::vector<bool> spelled_shown_;  // of its bytes: whether they are in shown_ too
  std::string unfinished_;
  bool stopped_ = false;
};

// Refuses a stop text that could never be found: an empty one, or one that is no UTF-8.
void check_stop_text(const std::string& stop);

}  // namespace rankine

#pragma once
#include <span>
#include <string>
#include <vector>

#include "data/tokenizer/bpe_tokenizer.h"

namespace rankine {

// The text of tokens as they come, up to the first stop text. What is given out never ends within
// a character, and never with what may turn out to be the beginning of a stop text.
class TextStream {
 public:
  // Text behind that of the tokens `before`, which begins with a space where it is a new word.
  // Special tokens are left out of it. `tokenizer` outlives the stream.
  TextStream(const BpeTokenizer& tokenizer, std::vector<std::string> stops,
             std::span<const int32_t> before = {});

  std::string push(int32_t id);  // the text that is certain now; may be empty
  // Whether a stop text has come; it is not given out, nor is what comes behind it.
  bool stopped() const { return stopped_; }
  // What was held back, without the beginning of a character that never ended.
  std::string finish();

 private:
  StreamDecoder decoder_;
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace rankine

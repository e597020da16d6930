#include "data/show_samples.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace rankine {
namespace {

// Writes one sample after the other, token by token.
class SampleText {
 public:
  explicit SampleText(const BpeTokenizer& tokenizer) : tokenizer_(tokenizer), decoder_(tokenizer) {}

  void add(int32_t id, bool learned) {
    if (learned != inside_) mark(learned);
    // Added tokens are spelled as they are; others may need their neighbours to be a character.
    if (tokenizer_.is_special(id))
      text_ += decoder_.finish() + tokenizer_.spelled(id);
    else
      text_ += decoder_.push(id);
    ++tokens_;
    learned_ += learned ? 1 : 0;
  }
  bool empty() const { return tokens_ == 0; }

  // The sample's text with a line that tells its size; begins the next.
  std::string take(uint64_t number) {
    if (inside_) mark(false);
    text_ += decoder_.finish();
    std::string out =
        fmt::format("--- {}: {} tokens, {} learned\n{}\n", number, tokens_, learned_, text_);
    text_.clear();
    tokens_ = learned_ = 0;
    return out;
  }

 private:
  void mark(bool learned) {
    text_ += decoder_.finish() + (learned ? "[[" : "]]");
    inside_ = learned;
  }

  const BpeTokenizer& tokenizer_;
  StreamDecoder decoder_;
  std::string text_;
  uint64_t tokens_ = 0, learned_ = 0;
  bool inside_ = false;
};

}  // namespace

std::string shown_samples(const TokenData& data, const BpeTokenizer& tokenizer, uint64_t count) {
  constexpr uint64_t at_once = 4096;
  std::vector<uint32_t> tokens(at_once);
  std::string out;
  SampleText sample(tokenizer);
  uint64_t shown = 0;
  for (uint64_t at = 0; at < data.count() && shown < count; at += at_once) {
    const uint64_t here = std::min(at_once, data.count() - at);
    data.copy_marked(at, here, tokens.data());
    for (uint64_t i = 0; i < here && shown < count; ++i) {
      const bool samples = data.has_samples();
      const auto id = static_cast<int32_t>(samples ? tokens[i] & sample_id_mask : tokens[i]);
      const bool begins = samples && (tokens[i] & sample_begin) != 0;
      if (begins && !sample.empty()) {
        out += sample.take(++shown);
        if (shown == count) break;
      }
      const bool target = !samples || (tokens[i] & sample_target) != 0;
      sample.add(id, target && !sample.empty());
      if (!samples && id == data.end_token()) out += sample.take(++shown);
    }
  }
  if (shown < count && !sample.empty()) out += sample.take(++shown);
  return out;
}

}  // namespace rankine

#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizer/split_pattern.h"

// Learns a byte-level BPE from text: the most frequent pair of neighbouring tokens within words
// becomes a token, again and again. Rule: the result depends on the words' counts alone; of equally
// frequent pairs the one with the lower ids goes first.
namespace rankine {

class BpeTrainer {
 public:
  explicit BpeTrainer(SplitPattern pattern) : pattern_(pattern) {}

  // Counts the words of one document.
  void add(std::string_view text);
  uint64_t bytes() const { return bytes_; }  // of all documents
  size_t different_words() const { return counts_.size(); }

  // The text of the tokenizer.json of `vocabulary` tokens: 256 bytes, what merges make, and
  // "<|endoftext|>" last. Error{usage} below 257, Error{data} when the text has too few pairs.
  std::string train(int64_t vocabulary) const;
  // The tokenizer_config.json that goes with it.
  std::string config() const;

 private:
  struct WordHash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const;
  };
  SplitPattern pattern_;
  uint64_t bytes_ = 0;
  std::unordered_map<std::string, int64_t, WordHash, std::equal_to<>> counts_;
};

}  // namespace rankine

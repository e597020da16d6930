#pragma once
#include <cstdint>
#include <vector>

#include "data/token_source.h"

// One corpus cut into windows that a sequence of the model holds.
//
// Of running text window i begins at token i * seq_length, and a document may go on in the next
// one. Samples of instructions are packed: a window holds as many whole ones as fit, in order; a
// longer one is cut, and only the tokens that are to be learned are targets. A sample of which none
// is left then is dropped, so that every window has a target.
namespace rankine {

// Where the tokens of a window go, seq_length of each: what the model reads; the next-token
// targets, -1 where there is nothing to learn; and, unless null, the first token of each token's
// document within the window.
struct WindowRow {
  int32_t *inputs = nullptr, *targets = nullptr, *first_keys = nullptr;

  WindowRow from(int64_t token) const {
    return {inputs + token, targets + token, first_keys == nullptr ? nullptr : first_keys + token};
  }
};

class Corpus {
 public:
  // `end_token`: what ends a document where the data do not say it, -1 when nothing does. `name`:
  // what messages call the corpus; "": its first file. Error{data} when there is less than one
  // window, or no sample with a target.
  Corpus(TokenData data, uint64_t seq_length, int32_t end_token = -1, std::string name = "");

  uint64_t windows() const { return windows_; }
  uint64_t seq_length() const { return seq_length_; }
  uint64_t cut_samples() const { return cut_samples_; }  // of those that are used
  // What a user may want to know of samples: those cut, those dropped and why.
  std::vector<std::string> warnings() const;
  const TokenData& data() const { return data_; }
  const std::string& name() const { return name_; }

  bool knows_documents() const { return data_.has_samples() || end_token_ >= 0; }
  void fill(uint64_t window, const WindowRow& row) const;

 private:
  struct Dropped {
    std::vector<uint64_t> begins;  // first tokens, ascending
    uint64_t without_targets = 0;  // whatever the length
    // Of the others: the least and the largest seq_length that would keep one.
    uint64_t least_length = 0, most_length = 0;
  };
  void pack_samples();
  void pack_sample(uint64_t begin, uint64_t end, uint64_t first_target, uint64_t& used);
  void require_samples() const;
  void fill_samples(uint64_t window, const WindowRow& row) const;

  TokenData data_;
  std::string name_;
  int32_t end_token_;
  uint64_t seq_length_, windows_ = 0, samples_ = 0, cut_samples_ = 0;
  Dropped dropped_;
  std::vector<uint64_t> first_tokens_;  // of the windows of samples, and the end of the last
};

}  // namespace rankine

#pragma once
#include <cstdint>
#include <vector>

#include "data/token_source.h"

// One corpus cut into windows that a sequence of the model holds.
//
// Of running text window i begins at token i * seq_length, and a document may go on in the next
// one. Samples of instructions are packed: a window holds as many whole ones as fit, in order; a
// longer one is cut, and only the tokens that are to be learned are targets.
namespace rankine {

class Corpus {
 public:
  // Error{data} when there is less than one window.
  Corpus(TokenData data, uint64_t seq_length);

  uint64_t windows() const { return windows_; }
  uint64_t seq_length() const { return seq_length_; }
  uint64_t cut_samples() const { return cut_samples_; }
  const TokenData& data() const { return data_; }

  // The next-token targets of a window; -1 where there is nothing to learn.
  void fill(uint64_t window, int32_t* inputs, int32_t* targets) const;

 private:
  void pack_samples();
  void fill_samples(uint64_t window, int32_t* inputs, int32_t* targets) const;

  TokenData data_;
  uint64_t seq_length_, windows_ = 0, cut_samples_ = 0;
  std::vector<uint64_t> first_tokens_;  // of the windows of samples, and the end of the last
};

}  // namespace rankine

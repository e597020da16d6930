#pragma once
#include <string>

#include "data/token_source.h"
#include "data/tokenizer/bpe_tokenizer.h"

namespace rankine {

// The first `count` samples or documents as text, special tokens spelled out, what is learned
// between [[ and ]]. A sample's first token is predicted by nothing, so that it is never learned.
std::string shown_samples(const TokenData& data, const BpeTokenizer& tokenizer, uint64_t count);

}  // namespace rankine

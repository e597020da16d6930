#pragma once
#include <cstdint>
#include <string>

// `--tokenizer bytes`: a token is a byte value, and one more token stands between documents.
namespace rankine {

constexpr int32_t end_of_text_byte_token = 256;
constexpr int64_t byte_vocabulary = 257;

// The text of a tokenizer.json that gives these ids in any reader of that format: a byte-level BPE
// without merges, and "<|endoftext|>" = 256.
std::string byte_tokenizer_json();
// The tokenizer_config.json that goes with it.
std::string byte_tokenizer_config_json();

}  // namespace rankine

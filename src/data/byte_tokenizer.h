#pragma once
#include <string>

namespace rankine {

// The text of a tokenizer.json that gives the ids of `--tokenizer bytes` in any reader of that
// format: a byte-level BPE without merges, id = byte value, and "<|endoftext|>" = 256.
std::string byte_tokenizer_json();
// The tokenizer_config.json that goes with it.
std::string byte_tokenizer_config_json();

}  // namespace rankine

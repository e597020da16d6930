#include "data/byte_tokenizer.h"

#include "data/tokenizer/byte_alphabet.h"
#include "data/tokenizer/tokenizer_files.h"

namespace rankine {
namespace {

ByteLevelFile byte_file() {
  ByteLevelFile file{.tokens = {},
                     .merges = {},
                     .splits_words = false,
                     .end_of_text = "<|endoftext|>",
                     .end_of_text_id = end_of_text_byte_token};
  for (int byte = 0; byte < end_of_text_byte_token; ++byte)
    file.tokens.push_back(to_printable(std::string(1, static_cast<char>(byte))));
  return file;
}

}  // namespace

std::string byte_tokenizer_json() {
  return tokenizer_json(byte_file());
}

std::string byte_tokenizer_config_json() {
  return tokenizer_config_json(byte_file());
}

}  // namespace rankine

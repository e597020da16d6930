#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/text_tokenizer.h"
#include "model/config.h"

namespace rankine {

// What begins and ends a text, decided in one place: training, evaluation, generation, chat and
// export follow it.
struct TextBounds {
  TokenIds begin;             // in front of every text, document and prompt; mostly none or one
  int32_t document_end = -1;  // behind every document; -1: nothing is known
  std::vector<int32_t> ends;  // end a text that is generated, each once
};

// What a model's files and a tokenizer say, and what was taught or is written by a chat template.
struct BoundSources {
  const ModelConfig& config;
  std::span<const int64_t> generation_ends;  // of generation_config.json
  const TextTokenizer* tokenizer = nullptr;
  int32_t reply_end = -1;  // the token that ends a chat template's replies
};
TextBounds text_bounds(const BoundSources& sources);

// "begins with '<s>' (1), documents end with '</s>' (2), generation ends at '</s>' (2)". Ids alone
// without a tokenizer.
std::string to_string(const TextBounds& bounds, const TextTokenizer* tokenizer);

// Makes every id of `ends` one of those that end a text by the config.
void add_ends(ModelConfig& config, std::span<const int32_t> ends);

}  // namespace rankine

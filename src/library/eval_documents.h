#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "data/options.h"
#include "data/text_tokenizer.h"

namespace rankine {

// A text to be scored, or tokens, and where it is from.
struct EvalDocument {
  std::filesystem::path file;
  int64_t index = 0;      // in its file
  std::string_view text;  // of text files, as it is there
  std::vector<int32_t> ids = {};
  bool is_tokens = false;
};

// Calls `use` for all documents in order: text files are one each, so is the field of each JSON
// line; token files are one each, and must come from `tokenizer` when they and it say what they
// are.
void for_each_document(const TextOptions& options, const TextTokenizer* tokenizer, Log& log,
                       const std::function<void(const EvalDocument&)>& use);

}  // namespace rankine

#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/options.h"
#include "data/tokenizer/bpe_tokenizer.h"

namespace rankine {

// A text to be scored, and where it is from.
struct EvalDocument {
  std::filesystem::path file;
  int64_t index = 0;         // in its file
  std::string_view text;     // of text files
  std::vector<int32_t> ids;  // of token files
  bool is_tokens = false;
};

// Calls `use` for all documents in order: text files are one each, of *.jsonl every line's "text"
// is one, token files are one each.
void for_each_document(const std::vector<std::filesystem::path>& files, DataFormat format,
                       const std::function<void(const EvalDocument&)>& use);

}  // namespace rankine

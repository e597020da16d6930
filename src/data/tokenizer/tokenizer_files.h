#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "data/tokenizer/split_pattern.h"

// Writing tokenizer.json and tokenizer_config.json for byte-level BPE.
namespace rankine {

struct ByteLevelFile {
  std::vector<std::string> tokens;  // by id, in printable bytes
  std::vector<std::pair<std::string, std::string>> merges;
  SplitPattern pattern = SplitPattern::gpt2;
  bool add_prefix_space = false;
  bool splits_words = true;  // by the pattern; else a text is one word
  std::string end_of_text;   // the special token between documents; "" for none
  int64_t end_of_text_id = -1;
};

std::string tokenizer_json(const ByteLevelFile& file);
std::string tokenizer_config_json(const ByteLevelFile& file);

// The tokenizer.json that says the same as the GPT-2 files vocab.json and merges.txt of a folder.
std::string json_of_vocabulary_files(const std::filesystem::path& folder);

}  // namespace rankine

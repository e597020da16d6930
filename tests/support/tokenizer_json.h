#pragma once
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

// Byte-level tokenizer.json files: the 256 bytes as ids 0 to 255, merges, then added tokens.
namespace rankine::test {

using Json = nlohmann::json;

// How the file spells each byte.
inline std::array<std::string, 256> byte_spellings() {
  std::array<std::string, 256> out;
  int beyond = 256;
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= 33 && b < 127) || (b >= 161 && b < 173) || b >= 174;
    const int point = printable ? b : beyond++;
    auto& text = out[static_cast<size_t>(b)];
    if (point < 128) {
      text = static_cast<char>(point);
    } else {
      text += static_cast<char>(0xC0 | (point >> 6));
      text += static_cast<char>(0x80 | (point & 0x3F));
    }
  }
  return out;
}

struct ByteLevelParts {
  std::vector<std::string> special = {}, plain = {};  // added tokens, in this order behind merges
  std::vector<std::pair<std::string, std::string>> merges = {};  // of spelled pieces
  bool plain_normalized = false;
  bool splits_words = true;
};

inline Json byte_level_json(const ByteLevelParts& parts = {}) {
  const std::array<std::string, 256> spellings = byte_spellings();
  Json vocabulary = Json::object(), merges = Json::array(), added = Json::array();
  for (size_t b = 0; b < 256; ++b) vocabulary[spellings[b]] = b;
  for (const auto& [left, right] : parts.merges) {
    if (!vocabulary.contains(left + right)) vocabulary[left + right] = vocabulary.size();
    merges.push_back(left + " " + right);
  }
  size_t next = vocabulary.size();
  const auto add = [&](const std::string& content, bool special, bool normalized) {
    added.push_back({{"id", next++},
                     {"content", content},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", normalized},
                     {"special", special}});
  };
  for (const std::string& content : parts.special) add(content, true, false);
  for (const std::string& content : parts.plain) add(content, false, parts.plain_normalized);
  const Json bytes = {{"type", "ByteLevel"},
                      {"add_prefix_space", false},
                      {"trim_offsets", true},
                      {"use_regex", parts.splits_words}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", bytes},
          {"post_processor", nullptr},
          {"decoder", bytes},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", vocabulary},
            {"merges", merges}}}};
}

// The files of a tokenizer with one special token, which ends texts: id 256.
inline std::map<std::string, std::string> byte_level_files(const std::string& end_of_text) {
  return {{"tokenizer.json", byte_level_json({.special = {end_of_text}}).dump()},
          {"tokenizer_config.json", nlohmann::json{{"eos_token", end_of_text}}.dump()}};
}

}  // namespace rankine::test

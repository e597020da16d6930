#include "data/byte_tokenizer.h"

#include <nlohmann/json.hpp>

#include "data/token_source.h"

namespace rankine {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* end_of_text = "<|endoftext|>";

// GPT-2's printable stand-in for a byte: itself when printable in Latin-1, else the next free code
// point from U+0100 on.
std::vector<uint32_t> byte_alphabet() {
  std::vector<uint32_t> points(256);
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    points[byte] = printable ? byte : next++;
  }
  return points;
}

std::string utf8(uint32_t point) {  // below U+0800
  if (point < 0x80) return {static_cast<char>(point)};
  return {static_cast<char>(0xC0 | point >> 6), static_cast<char>(0x80 | (point & 0x3F))};
}

}  // namespace

std::string byte_tokenizer_json() {
  Json vocabulary = Json::object();
  const std::vector<uint32_t> points = byte_alphabet();
  for (size_t byte = 0; byte < points.size(); ++byte) vocabulary[utf8(points[byte])] = byte;
  const Json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", false}};
  Json json;
  json["version"] = "1.0";
  json["truncation"] = nullptr;
  json["padding"] = nullptr;
  json["added_tokens"] = Json::array({{{"id", end_of_text_byte_token},
                                       {"content", end_of_text},
                                       {"single_word", false},
                                       {"lstrip", false},
                                       {"rstrip", false},
                                       {"normalized", false},
                                       {"special", true}}});
  json["normalizer"] = nullptr;
  json["pre_tokenizer"] = byte_level;
  json["post_processor"] = nullptr;
  json["decoder"] = byte_level;
  json["model"] = {{"type", "BPE"},
                   {"dropout", nullptr},
                   {"unk_token", nullptr},
                   {"continuing_subword_prefix", nullptr},
                   {"end_of_word_suffix", nullptr},
                   {"fuse_unk", false},
                   {"byte_fallback", false},
                   {"ignore_merges", false},
                   {"vocab", vocabulary},
                   {"merges", Json::array()}};
  return json.dump(2) + "\n";
}

std::string byte_tokenizer_config_json() {
  const Json json = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                     {"eos_token", end_of_text},
                     {"add_prefix_space", false},
                     {"clean_up_tokenization_spaces", false},
                     {"model_max_length", 1000000}};
  return json.dump(2) + "\n";
}

}  // namespace rankine

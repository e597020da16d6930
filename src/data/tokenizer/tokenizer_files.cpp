#include "data/tokenizer/tokenizer_files.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/lfs_pointer.h"
#include "data/tokenizer/json_place.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* end_of_text = "<|endoftext|>";

Json byte_level(bool add_prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

Json pre_tokenizer(const ByteLevelFile& file) {
  if (file.pattern == SplitPattern::gpt2)
    return byte_level(file.add_prefix_space, file.splits_words);
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", pattern_regex(file.pattern)}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  return {{"type", "Sequence"},
          {"pretokenizers", Json::array({split, byte_level(file.add_prefix_space, false)})}};
}

Json model(const ByteLevelFile& file) {
  Json vocabulary = Json::object();
  for (size_t id = 0; id < file.tokens.size(); ++id)
    if (!file.tokens[id].empty()) vocabulary[file.tokens[id]] = id;
  Json merges = Json::array();
  for (const auto& [left, right] : file.merges) merges.push_back(left + " " + right);
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", std::move(vocabulary)},
          {"merges", std::move(merges)}};
}

std::vector<std::pair<std::string, std::string>> read_merges_file(const fs::path& path) {
  std::vector<std::pair<std::string, std::string>> merges;
  const std::string text = read_text(path);
  require(!is_lfs_pointer(text), ErrorKind::data, "'{}' is {}", path.string(), lfs_pointer_text);
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const size_t space = line.find(' ');
    const bool two = space != std::string::npos && line.find(' ', space + 1) == std::string::npos;
    require(two, ErrorKind::data,
            "'{}': line {} must be two tokens with a space between them, not '{}'", path.string(),
            number, line);
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

std::vector<std::string> read_vocabulary_file(const fs::path& path) {
  const std::string name = path.string();
  const nlohmann::json parsed = parse_tokenizer_json(read_text(path), name);
  const JsonPlace root(parsed, name);
  root.need(parsed.is_object() && !parsed.empty(), "must be an object from tokens to ids");
  std::vector<std::string> tokens(parsed.size());
  for (const auto& [token, value] : parsed.items()) {
    const JsonPlace place = root.child(value, token);
    const auto id = static_cast<size_t>(place.integer(0, static_cast<int64_t>(parsed.size()) - 1));
    place.need(tokens[id].empty(), "two tokens have the id {}", id);
    tokens[id] = token;
  }
  return tokens;
}

}  // namespace

std::string tokenizer_json(const ByteLevelFile& file) {
  Json json;
  json["version"] = "1.0";
  json["truncation"] = nullptr;
  json["padding"] = nullptr;
  json["added_tokens"] = Json::array();
  if (!file.end_of_text.empty())
    json["added_tokens"].push_back({{"id", file.end_of_text_id},
                                    {"content", file.end_of_text},
                                    {"single_word", false},
                                    {"lstrip", false},
                                    {"rstrip", false},
                                    {"normalized", false},
                                    {"special", true}});
  json["normalizer"] = nullptr;
  json["pre_tokenizer"] = pre_tokenizer(file);
  json["post_processor"] = nullptr;
  json["decoder"] = byte_level(false, file.splits_words);
  json["model"] = model(file);
  return json.dump(1) + "\n";
}

std::string tokenizer_config_json(const ByteLevelFile& file) {
  Json json = {{"tokenizer_class", "PreTrainedTokenizerFast"},
               {"add_prefix_space", file.add_prefix_space},
               {"clean_up_tokenization_spaces", false},
               {"model_max_length", 1000000}};
  if (!file.end_of_text.empty()) json["eos_token"] = file.end_of_text;
  return json.dump(2) + "\n";
}

std::string json_of_vocabulary_files(const fs::path& folder) {
  ByteLevelFile file;
  const fs::path config = folder / "tokenizer_config.json";
  if (is_there(config)) {
    const std::string name = config.string();
    const nlohmann::json parsed = parse_tokenizer_json(read_text(config), name);
    JsonMembers members(JsonPlace(parsed, name));
    const std::string kind = members.text_or("tokenizer_class", "GPT2Tokenizer");
    members.place().need(kind == "GPT2Tokenizer" || kind == "GPT2TokenizerFast",
                         "vocab.json and merges.txt of a {} do not say how it cuts words; give its "
                         "tokenizer.json",
                         kind);
    file.add_prefix_space = members.flag_or("add_prefix_space", false);
  }
  require(!is_there(folder / "added_tokens.json"), ErrorKind::data,
          "'{}': added_tokens.json is not understood; give a tokenizer.json", folder.string());
  file.tokens = read_vocabulary_file(folder / "vocab.json");
  file.merges = read_merges_file(folder / "merges.txt");
  const auto at = std::find(file.tokens.begin(), file.tokens.end(), end_of_text);
  if (at != file.tokens.end()) {
    file.end_of_text = end_of_text;
    file.end_of_text_id = at - file.tokens.begin();
  }
  return tokenizer_json(file);
}

}  // namespace rankine

#include "data/text_tokenizer.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "data/byte_tokenizer.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

uint64_t bytes_hash() {
  static const uint64_t hash = BpeTokenizer::parse(byte_tokenizer_json(), "bytes").hash();
  return hash;
}

}  // namespace

TextTokenizer::TextTokenizer(BpeTokenizer bpe, std::map<std::string, std::string> files,
                             std::string place)
    : bpe_(std::make_shared<const BpeTokenizer>(std::move(bpe))),
      files_(std::move(files)),
      place_(std::move(place)),
      is_bytes_(bpe_->hash() == bytes_hash()) {
  files_["tokenizer.json"] = bpe_->json();
  std::erase_if(files_, [](const auto& file) { return file.second.empty(); });
}

TextTokenizer TextTokenizer::bytes() {
  return parse(byte_tokenizer_json(), byte_tokenizer_config_json(), "bytes");
}

TextTokenizer TextTokenizer::open(const fs::path& name) {
  if (name == "bytes") return bytes();
  require(is_there(name), ErrorKind::data,
          "tokenizer '{}' does not exist; give bytes, a tokenizer.json, or a folder with one",
          name.string());
  const fs::path folder = is_folder(name) ? name : name.parent_path();
  std::map<std::string, std::string> files;
  for (const char* file : {"tokenizer_config.json", "special_tokens_map.json",
                           "chat_template.jinja", "chat_template.json"})
    if (is_there(folder / file)) files.emplace(file, read_text(folder / file));
  return {BpeTokenizer::open(name), std::move(files), folder.empty() ? "." : folder.string()};
}

bool TextTokenizer::lies_in(const fs::path& folder) {
  return is_there(folder / "tokenizer.json") ||
         (is_there(folder / "vocab.json") && is_there(folder / "merges.txt"));
}

TextTokenizer TextTokenizer::parse(std::string json, std::string config, const std::string& file) {
  BpeTokenizer bpe = BpeTokenizer::parse(json, file, {.config = config, .map = ""});
  return {std::move(bpe), {{"tokenizer_config.json", std::move(config)}}, file};
}

TextTokenizer TextTokenizer::with_config(std::string config) const {
  const std::string json_file = (fs::path(place_) / "tokenizer.json").string();
  BpeTokenizer bpe = BpeTokenizer::parse(
      bpe_->json(), json_file, {.config = config, .map = file("special_tokens_map.json")});
  std::map<std::string, std::string> files = files_;
  files["tokenizer_config.json"] = std::move(config);
  return {std::move(bpe), std::move(files), place_};
}

TextTokenizer TextTokenizer::with_bounds(const std::string& begin, const std::string& end) const {
  if (begin.empty() && end.empty()) return *this;
  const auto check = [&](const char* option, const std::string& text) {
    require(bpe_->token_id(text) >= 0, ErrorKind::data,
            "{} '{}' is no token of the tokenizer of '{}'", option, text, place_);
  };
  Json config = Json::parse(whole_config());
  if (!end.empty()) {
    check("--end-token", end);
    config["eos_token"] = end;
  }
  if (!begin.empty()) config["add_bos_token"] = begin != "none";
  if (!begin.empty() && begin != "none") {
    check("--begin-token", begin);
    config["bos_token"] = begin;
  }
  return with_config(config.dump(2) + "\n");
}

TextTokenizer TextTokenizer::with_file(const std::string& name, std::string text) const {
  TextTokenizer out = *this;
  out.files_[name] = std::move(text);
  return out;
}

std::string TextTokenizer::whole_config() const {
  const std::string text = file("tokenizer_config.json");
  Json config = text.empty() ? Json::object() : Json::parse(text);
  const SpecialIds& special = bpe_->special();
  const auto name = [&](const char* key, int32_t id) {
    if (id >= 0 && !config.contains(key)) config[key] = bpe_->spelled(id);
  };
  name("bos_token", special.begin);
  name("eos_token", special.end);
  name("pad_token", special.pad);
  name("unk_token", special.unknown);
  const ChatTemplateFiles files = chat_template_files();
  if (ChatTemplate::lies_in(files) && (!files.jinja.empty() || !config.contains("chat_template")))
    config["chat_template"] = chat_template().text();
  return config.dump(2) + "\n";
}

std::string TextTokenizer::identity() const {
  return is_bytes_ ? "bytes" : fmt::format("{:016x}", bpe_->hash());
}

std::string TextTokenizer::file(const std::string& name) const {
  const auto at = files_.find(name);
  return at == files_.end() ? "" : at->second;
}

ChatTemplateFiles TextTokenizer::chat_template_files() const {
  ChatTemplateFiles out{.config = file("tokenizer_config.json"),
                        .jinja = file("chat_template.jinja"),
                        .json = file("chat_template.json"),
                        .place = place_};
  const SpecialIds& special = bpe_->special();
  const auto add = [&](const char* name, int32_t id) {
    if (id >= 0) out.tokens[name] = bpe_->spelled(id);
  };
  add("bos_token", special.begin);
  add("eos_token", special.end);
  add("pad_token", special.pad);
  add("unk_token", special.unknown);
  return out;
}

ChatTemplate TextTokenizer::chat_template(const ChatTemplateChoice& choice) const {
  return ChatTemplate::parse(chat_template_files(), choice);
}

TokenIds TextTokenizer::first_tokens() const {
  const SpecialIds& special = bpe_->special();
  if (!bpe_->begins().empty()) return bpe_->begins();
  const int32_t first = special.begin >= 0 ? special.begin : special.end;
  return first >= 0 ? TokenIds{first} : TokenIds{};
}

int32_t TextTokenizer::end_token() const {
  const int32_t own = bpe_->special().end;
  const int32_t id = own >= 0 ? own : bpe_->token_id("<|endoftext|>");
  require(id >= 0, ErrorKind::data,
          "the tokenizer of '{}' names no token that ends a text (eos_token of "
          "tokenizer_config.json); say which one stands between documents: --end-token '</s>'",
          place_);
  return id;
}

}  // namespace rankine

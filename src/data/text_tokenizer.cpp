#include "data/text_tokenizer.h"

#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "data/byte_tokenizer.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

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
  for (const char* file :
       {"tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"})
    if (is_there(folder / file)) files.emplace(file, read_text(folder / file));
  return {BpeTokenizer::open(name), std::move(files), folder.empty() ? "." : folder.string()};
}

bool TextTokenizer::lies_in(const fs::path& folder) {
  return is_there(folder / "tokenizer.json") ||
         (is_there(folder / "vocab.json") && is_there(folder / "merges.txt"));
}

TextTokenizer TextTokenizer::parse(std::string json, std::string config, const std::string& file) {
  BpeTokenizer bpe = BpeTokenizer::parse(json, file, config);
  return {std::move(bpe), {{"tokenizer_config.json", std::move(config)}}, file};
}

std::string TextTokenizer::identity() const {
  return is_bytes_ ? "bytes" : fmt::format("{:016x}", bpe_->hash());
}

std::string TextTokenizer::file(const std::string& name) const {
  const auto at = files_.find(name);
  return at == files_.end() ? "" : at->second;
}

ChatTemplate TextTokenizer::chat_template(const std::string& name) const {
  return ChatTemplate::parse(file("tokenizer_config.json"), file("chat_template.jinja"), place_,
                             name);
}

int32_t TextTokenizer::end_token(std::string_view named) const {
  if (!named.empty()) {
    const int32_t id = bpe_->token_id(named);
    require(id >= 0, ErrorKind::data, "--end-token '{}' is no token of the tokenizer of '{}'",
            named, place_);
    return id;
  }
  const int32_t own = bpe_->special().end;
  const int32_t id = own >= 0 ? own : bpe_->token_id("<|endoftext|>");
  require(id >= 0, ErrorKind::data,
          "the tokenizer of '{}' names no token that ends a text (eos_token of "
          "tokenizer_config.json); say which one stands between documents: --end-token '</s>'",
          place_);
  return id;
}

}  // namespace rankine

#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "data/chat/chat_template.h"
#include "data/tokenizer/bpe_tokenizer.h"

// The tokenizer of a model or a run: how its text becomes tokens, and the files that say so to
// other programs. Bytes are a tokenizer like others, with a shorter way to their ids.
namespace rankine {

class TextTokenizer {
 public:
  static TextTokenizer bytes();
  // "bytes", a tokenizer.json, or a folder with one or with vocab.json and merges.txt.
  static TextTokenizer open(const std::filesystem::path& name);
  // Whether the folder has files that open() would read.
  static bool lies_in(const std::filesystem::path& folder);
  // From the texts of tokenizer.json and of tokenizer_config.json ("" for none), which stand in
  // `file`.
  static TextTokenizer parse(std::string json, std::string config, const std::string& file);
  // This one with other tokens around texts, as they are spelled; "" leaves what is. `begin` "none"
  // puts nothing in front of texts. Its files say so too. Error{data} for what is no token.
  TextTokenizer with_bounds(const std::string& begin, const std::string& end) const;

  const BpeTokenizer& bpe() const { return *bpe_; }
  bool is_bytes() const { return is_bytes_; }
  int64_t vocabulary() const { return bpe_->vocabulary(); }
  // "bytes", or 16 hexadecimal digits that change with what the tokenizer does.
  std::string identity() const;
  // tokenizer.json, tokenizer_config.json and what else lay beside them, by name.
  const std::map<std::string, std::string>& files() const { return files_; }
  // The text of one of them, or "".
  std::string file(const std::string& name) const;
  // One tokenizer_config.json that says what all files beside tokenizer.json do.
  std::string whole_config() const;
  // This one with a file beside it replaced or added.
  TextTokenizer with_file(const std::string& name, std::string text) const;
  // What these files say of chat templates.
  ChatTemplateFiles chat_template_files() const;
  // The template of these files, or the named one; errors as ChatTemplate::parse.
  ChatTemplate chat_template(const ChatTemplateChoice& choice = {}) const;
  // What stands before the first token of a text that is predicted: what the tokenizer puts there,
  // otherwise the token that begins or ends texts; empty when there is none.
  TokenIds first_tokens() const;
  // The token that stands between documents, the tokenizer's own end of text. Error{data} when
  // there is none.
  int32_t end_token() const;

 private:
  TextTokenizer(BpeTokenizer bpe, std::map<std::string, std::string> files, std::string place);
  TextTokenizer with_config(std::string config) const;

  std::shared_ptr<const BpeTokenizer> bpe_;
  std::map<std::string, std::string> files_;
  std::string place_;  // the folder or file they are from, for messages
  bool is_bytes_ = false;
};

}  // namespace rankine

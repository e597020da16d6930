#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/chat/conversation.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "template/template.h"

// Conversations as the text that a chat model was trained on. Rule: the model's own template is
// executed, never guessed; what people write stays apart from what the template writes.
namespace rankine {

// What a user says of templates.
struct ChatTemplateChoice {
  std::string name;    // of a built-in one; "": the model's own
  std::string kwargs;  // a JSON object of further variables, as {"enable_thinking": false}; or ""
};

// The texts of a model's files that can hold a template, "" for none, and where they lie.
struct ChatTemplateFiles {
  std::string config;  // tokenizer_config.json
  std::string jinja;   // chat_template.jinja
  std::string json;    // chat_template.json
  std::string place;   // their folder, for messages
  // Variables that templates know special tokens by: "bos_token" -> "<s>".
  std::map<std::string, std::string> tokens = {};
};

class ChatTemplate {
 public:
  // "llama3", "chatml", ....
  static const std::vector<std::string>& names();
  // Whether the files hold one.
  static bool lies_in(const ChatTemplateFiles& files);
  // The files' own, or the one that is named. Error{data} for a template that is missing or not
  // understood, Error{usage} for an unknown name.
  static ChatTemplate parse(const ChatTemplateFiles& files, const ChatTemplateChoice& choice = {});

  // Of a built-in one, or "the model's own".
  const std::string& name() const { return name_; }
  const std::string& text() const { return text_; }  // Jinja
  // A text that changes when renderings may.
  std::string identity() const;
  // Tokens that the tokenizer must have.
  const std::vector<std::string>& required_tokens() const { return required_tokens_; }
  bool has_generation_blocks() const { return program_.has_generation_blocks(); }

  // The conversation's text; what message i says has origin i + 1, the template's own text 0. With
  // `for_reply` it ends where the assistant's next text begins. Error{data} for conversations the
  // template has no form for: roles nobody knows, messages or fields that it leaves out.
  MarkedText render(const Conversation& conversation, bool for_reply) const;
  // Sets what strftime_now tells, in seconds since 1970. Without it that is always the same day, so
  // that the tokens of data do not depend on when they were made.
  void set_time(int64_t seconds) { unix_time_ = seconds; }

 private:
  ChatTemplate(std::string name, std::string text, const std::string& place);
  bool mentions(std::string_view word) const;
  void check_fields(const Conversation& conversation) const;
  void check_roles(const Conversation& conversation) const;
  void check_complete(const Conversation& conversation, const MarkedText& text) const;
  TemplateVariables variables_of(const Conversation& conversation, bool for_reply) const;

  std::string name_, text_, tool_text_;
  bool is_built_in_ = false;
  Template program_;
  std::optional<Template> tool_program_;  // of the files' template for tools, where there are two
  std::map<std::string, std::string> tokens_;
  std::string kwargs_;
  std::vector<std::string> required_tokens_;
  int64_t unix_time_;
};

// The Jinja text of a built-in template and the tokens it is made of.
struct BuiltInTemplate {
  std::string_view name, text;
  std::vector<std::string> tokens;
};
const std::vector<BuiltInTemplate>& built_in_templates();

}  // namespace rankine

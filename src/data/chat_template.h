#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/bpe_tokenizer.h"

// Conversations as the text that a chat model was trained on. Rule: what people write never becomes
// a special token; only a template's own marks do.
namespace rankine {

struct ChatMessage {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
};

enum class ChatText : uint8_t {
  plain,  // ordinary text, whatever it says
  mark,   // a token where the tokenizer has it, otherwise ordinary text: "[INST]"
  token   // a token; without it the template does not fit the tokenizer
};

struct ChatPiece {
  std::string text;
  ChatText kind = ChatText::plain;
  bool is_reply = false;  // the assistant wrote it, its end mark included
  bool operator==(const ChatPiece&) const = default;
};

class ChatTemplate {
 public:
  // "llama3", "chatml", ....
  static const std::vector<std::string>& names();
  // What a model's folder says in chat_template.jinja or tokenizer_config.json, told by the marks
  // in it. A `name` overrides that. Error{data} for a template that is not known here or missing,
  // Error{usage} for an unknown name.
  static ChatTemplate open(const std::filesystem::path& folder, const std::string& name = "");
  // The same from the texts of the files, "" for none, which lie in `place`.
  static ChatTemplate parse(std::string_view config, std::string_view jinja,
                            const std::string& place, const std::string& name = "");

  const std::string& name() const { return name_; }
  // With `for_reply` the pieces end where the assistant's next text begins. Error{data} for roles
  // that are unknown or in an order the template has no form for.
  std::vector<ChatPiece> render(std::span<const ChatMessage> messages, bool for_reply) const;
  // The token that ends a reply, "" when there is none.
  const std::string& end_of_reply() const { return end_; }
  // How many bytes of a reply's first text are the template's and no part of what is said.
  size_t reply_begins(std::string_view text) const {
    return text.starts_with(before_reply_) ? before_reply_.size() : 0;
  }
  // Text that shows that the model goes on to speak for the user, "" where only tokens end a reply.
  std::string stop_text() const;

 private:
  enum class Style : uint8_t { headers, lines, instructions };
  using Messages = std::span<const ChatMessage>;
  using Pieces = std::vector<ChatPiece>;
  ChatTemplate() = default;
  void choose(const std::string& name);
  void take_details(const std::string& jinja);
  ChatMessage opening(Messages& messages) const;
  Pieces render_headers(Messages messages, bool for_reply) const;
  Pieces render_lines(Messages messages, bool for_reply) const;
  Pieces render_instructions(Messages messages, bool for_reply) const;
  void add_reply(Messages messages, size_t index, Pieces& out) const;

  std::string name_;
  Style style_ = Style::lines;
  std::string begin_, end_;  // tokens: of the whole, of a reply
  bool trims_ = false, trims_replies_ = false;
  // Headers: <open>role<close><behind_role>content<end><behind_end>.
  std::string open_, close_, behind_role_, behind_end_;
  std::string default_system_, before_system_;
  bool thinks_ = false;  // replies begin with what was thought, which later turns leave out
  // Instructions:
  // [INST]<behind_open>text<before_close>[/INST]<before_reply>reply<behind_reply><end>.
  std::string behind_open_, before_close_, before_reply_, behind_reply_;
  std::string system_open_, system_close_;
  bool begins_every_turn_ = false, system_with_last_ = false;
};

struct ChatTokens {
  TokenIds ids;
  std::vector<bool> is_reply;  // of each
};
// The ids of a conversation. A reply begins at a token, since a model writes it behind the others.
// Error{usage} when the tokenizer lacks a token of the template.
ChatTokens encode_chat(std::span<const ChatPiece> pieces, const BpeTokenizer& tokenizer,
                       Encoder& encoder);

}  // namespace rankine

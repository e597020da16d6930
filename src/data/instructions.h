#pragma once
#include <optional>
#include <string>
#include <vector>

#include "data/chat/chat_tokens.h"
#include "data/text_tokenizer.h"

// Conversations to learn replies from: the ids of a sample, of which the replies' alone are
// targets.
namespace rankine {

// How conversations become text.
struct InstructionFormat {
  ConversationFields fields;
  // None: prompt and response follow each other as they are, between the tokens that begin and end
  // a text.
  std::optional<ChatTemplate> chat;
};

// The template that is chosen: by name, "" the tokenizer's own if it has one, "none" none.
std::optional<ChatTemplate> chosen_template(const ChatTemplateChoice& choice,
                                            const TextTokenizer& tokenizer);

// The ids of samples. `format` and `tokenizer` must outlive it.
class SampleEncoder {
 public:
  SampleEncoder(const InstructionFormat& format, const TextTokenizer& tokenizer, int32_t end_token);

  // Error{data} for a conversation that the template has no form for or that has no reply.
  ChatTokens encode(const Conversation& conversation);
  // Whether a sample has a target: a learned token that is not its first.
  static bool learns(const ChatTokens& tokens);

 private:
  ChatTokens encode_plainly(const Conversation& conversation);

  const TextTokenizer& tokenizer_;
  int32_t end_token_;
  Encoder encoder_;
  std::optional<ChatEncoder> chat_;
};

// Appends a sample's tokens as token files store them (token_file.h).
void append_sample(const ChatTokens& tokens, std::vector<uint32_t>& out);

}  // namespace rankine

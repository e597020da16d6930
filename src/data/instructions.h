#pragma once
#include <optional>
#include <string>
#include <vector>

#include "data/chat_template.h"
#include "data/text_tokenizer.h"

// Conversations to learn replies from: the ids of a sample, of which the reply's alone are targets.
namespace rankine {

struct ConversationFields {
  std::string prompt = "prompt", response = "response";  // of one question and its answer
  std::string messages = "messages";                     // a list of {role, content}
};

// How conversations become text.
struct InstructionFormat {
  ConversationFields fields;
  // None: prompt and response follow each other as they are, and an end token.
  std::optional<ChatTemplate> chat;
};

// The template that `name` means: "" the tokenizer's own if it has one, "none" none.
std::optional<ChatTemplate> chosen_template(const std::string& name,
                                            const TextTokenizer& tokenizer);

// Appends the stored tokens of a sample (token_file.h). Error{data} for a conversation that the
// template has no form for or that has no reply.
class SampleEncoder {
 public:
  SampleEncoder(const InstructionFormat& format, const TextTokenizer& tokenizer, int32_t end_token)
      : format_(format), tokenizer_(tokenizer), end_token_(end_token), encoder_(tokenizer.bpe()) {}

  void encode(const std::vector<ChatMessage>& conversation, std::vector<uint32_t>& out);

 private:
  void encode_plainly(const std::vector<ChatMessage>& conversation, ChatTokens& out);

  const InstructionFormat& format_;
  const TextTokenizer& tokenizer_;
  int32_t end_token_;
  Encoder encoder_;
};

}  // namespace rankine

#include "data/instructions.h"

#include <algorithm>

#include "base/error.h"
#include "data/token_file.h"

namespace rankine {

std::optional<ChatTemplate> chosen_template(const ChatTemplateChoice& choice,
                                            const TextTokenizer& tokenizer) {
  const bool has_own = ChatTemplate::lies_in(tokenizer.chat_template_files());
  if (choice.name == "none" || (choice.name.empty() && !has_own)) {
    require(choice.kwargs.empty(), ErrorKind::usage,
            "--chat-template-kwargs has no effect: there is no chat template");
    return std::nullopt;
  }
  return tokenizer.chat_template(choice);
}

SampleEncoder::SampleEncoder(const InstructionFormat& format, const TextTokenizer& tokenizer,
                             int32_t end_token)
    : tokenizer_(tokenizer), end_token_(end_token), encoder_(tokenizer.bpe()) {
  if (format.chat) chat_.emplace(*format.chat, tokenizer.bpe());
}

ChatTokens SampleEncoder::encode_plainly(const Conversation& conversation) {
  const std::vector<ChatMessage>& messages = conversation.messages;
  require(messages.size() == 2 && messages[0].role == "user" && messages[1].role == "assistant",
          ErrorKind::data,
          "messages need a chat template, which the tokenizer does not have; name one with "
          "--chat-template");
  require(conversation.extras.empty() && messages[0].extras.empty() && messages[1].extras.empty(),
          ErrorKind::usage, "tools and other fields need a chat template that reads them");
  ChatTokens out;
  out.ids = tokenizer_.bpe().begins();
  out.is_reply.resize(out.ids.size(), false);
  MarkedText text;
  text.append(messages[0].content, 1);
  const size_t border = text.size();
  text.append(messages[1].content, 2);
  std::vector<TextRange> replies;
  if (messages[1].learned) replies.push_back({border, text.size()});
  encode_marked(text, replies, tokenizer_.bpe(), encoder_, out);
  out.ids.push_back(end_token_);
  out.is_reply.push_back(messages[1].learned);
  return out;
}

ChatTokens SampleEncoder::encode(const Conversation& conversation) {
  if (!chat_) return encode_plainly(conversation);
  require(std::ranges::any_of(conversation.messages,
                              [](const ChatMessage& m) { return m.role == "assistant"; }),
          ErrorKind::data, "no reply of the assistant");
  return chat_->encode(conversation, false);
}

bool SampleEncoder::learns(const ChatTokens& tokens) {
  return tokens.ids.size() > 1 && std::find(tokens.is_reply.begin() + 1, tokens.is_reply.end(),
                                            true) != tokens.is_reply.end();
}

void append_sample(const ChatTokens& tokens, std::vector<uint32_t>& out) {
  for (size_t i = 0; i < tokens.ids.size(); ++i)
    out.push_back(static_cast<uint32_t>(tokens.ids[i]) | (i == 0 ? sample_begin : 0) |
                  (tokens.is_reply[i] ? sample_target : 0));
}

}  // namespace rankine

#include "data/instructions.h"

#include <algorithm>

#include "base/error.h"
#include "data/token_file.h"

namespace rankine {

std::optional<ChatTemplate> chosen_template(const std::string& name,
                                            const TextTokenizer& tokenizer) {
  const std::string config = tokenizer.file("tokenizer_config.json");
  const std::string jinja = tokenizer.file("chat_template.jinja");
  const bool has_own = !jinja.empty() || config.find("\"chat_template\"") != std::string::npos;
  if (name == "none" || (name.empty() && !has_own)) return std::nullopt;
  return tokenizer.chat_template(name);
}

void SampleEncoder::encode_plainly(const std::vector<ChatMessage>& conversation, ChatTokens& out) {
  require(conversation.size() == 2 && conversation[0].role == "user" &&
              conversation[1].role == "assistant",
          ErrorKind::data,
          "messages need a chat template, which the tokenizer does not have; name one with "
          "--chat-template");
  for (const ChatMessage& message : conversation) {
    encoder_.encode(message.content, {}, out.ids);
    out.is_reply.resize(out.ids.size(), message.role == "assistant");
  }
  out.ids.push_back(end_token_);
  out.is_reply.push_back(true);
}

void SampleEncoder::encode(const std::vector<ChatMessage>& conversation,
                           std::vector<uint32_t>& out) {
  ChatTokens tokens;
  if (format_.chat)
    tokens = encode_chat(format_.chat->render(conversation, false), tokenizer_.bpe(), encoder_);
  else
    encode_plainly(conversation, tokens);
  // The first token is nobody's target.
  const bool learns =
      tokens.ids.size() > 1 &&
      std::find(tokens.is_reply.begin() + 1, tokens.is_reply.end(), true) != tokens.is_reply.end();
  require(learns, ErrorKind::data, "no reply of the assistant");
  for (size_t i = 0; i < tokens.ids.size(); ++i)
    out.push_back(static_cast<uint32_t>(tokens.ids[i]) | (i == 0 ? sample_begin : 0) |
                  (tokens.is_reply[i] ? sample_target : 0));
}

}  // namespace rankine

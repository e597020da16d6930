#pragma once
#include <string>
#include <string_view>
#include <vector>

// Conversations as data have them, before a chat template makes text of them.
namespace rankine {

// A member of a message or a conversation that only some templates read, as JSON.
struct ExtraField {
  std::string key, json;
};

struct ChatMessage {
  std::string role;         // "system", "user", "assistant", "tool", ...
  std::string content;      // "" where there is none, as with tool calls alone
  bool has_content = true;  // false: the data say null
  bool learned = true;      // of the assistant's: false where the data say so, as "weight": 0 does
  std::vector<ExtraField> extras = {};  // "tool_calls", "reasoning_content", "name", ...
};

struct Conversation {
  std::vector<ChatMessage> messages;
  std::vector<ExtraField> extras = {};  // "tools", "documents", "chat_template_kwargs"
};

// Which members of a JSON line hold what.
struct ConversationFields {
  std::string prompt = "prompt", response = "response";  // of one question and its answer
  std::string messages = "messages";                     // a list of {role, content, ...}
  std::vector<std::string> ignored;  // members that are left out, of conversations and messages
};

// The conversation of a JSON object: with `messages`, or without them with a prompt, which becomes
// the user's message, and its response, the assistant's. A prompt alone is one message where
// `needs_response` is false. Members without a meaning here are refused by name unless they are
// ignored or null: Error{usage}. Error{data} for what is no conversation, beginning with `place`
// where that is not empty.
Conversation parse_conversation(std::string_view json, const ConversationFields& fields,
                                bool needs_response, const std::string& place);

}  // namespace rankine

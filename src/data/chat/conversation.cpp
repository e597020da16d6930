#include "data/chat/conversation.h"

#include <algorithm>
#include <array>

#include "data/json_members.h"

namespace rankine {
namespace {

using Element = simdjson::dom::element;
using Object = simdjson::dom::object;

// What a conversation may hold beside its messages; the template decides what it reads of them.
constexpr std::array<std::string_view, 3> conversation_extras{"tools", "documents",
                                                              "chat_template_kwargs"};
// Whether a message is learned.
constexpr std::array<std::string_view, 3> learned_flags{"weight", "train", "trainable"};

template <class Names>
bool among(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

void add_extra(std::vector<ExtraField>& extras, std::string_view key, const Element& value) {
  std::erase_if(extras, [&](const ExtraField& extra) { return extra.key == key; });
  extras.push_back({std::string(key), simdjson::minify(value)});
}

// "weight": 0 or 1, "train" or "trainable": true or false.
bool is_learned(std::string_view key, const Element& value, std::string_view role) {
  bool learned = false;
  double weight = 0;
  if (value.get(learned) != simdjson::SUCCESS) {
    require(value.get(weight) == simdjson::SUCCESS && (weight == 0 || weight == 1),
            ErrorKind::usage,
            "a message has \"{}\": {}; only 0 and 1, or false and true, are honoured here", key,
            simdjson::minify(value));
    learned = weight == 1;
  }
  require(!learned || role == "assistant", ErrorKind::usage,
          "a message of role '{}' has \"{}\": {}; only the assistant's messages are learned. Leave "
          "the field out, or name it in --ignore-fields",
          role, key, simdjson::minify(value));
  return learned;
}

ChatMessage message_of(const Object& object, const ConversationFields& fields) {
  ChatMessage out;
  out.role = json_text(json_member(object, "role"), "role");
  const std::optional<Element> content = json_member(object, "content");
  out.has_content = content.has_value() && !content->is_null();
  for (const auto& [key, value] : object) {
    if (key == "role" || key == "content" || value.is_null() || among(fields.ignored, key))
      continue;
    if (among(learned_flags, key))
      out.learned = is_learned(key, value, out.role);
    else
      add_extra(out.extras, key, value);
  }
  // Tool calls, and what was thought, can stand without a content.
  const bool may_lack = content.has_value() || !out.extras.empty();
  if (out.has_content || !may_lack) out.content = json_text(content, "content");
  require(out.has_content || !out.extras.empty(), ErrorKind::data, "\"content\" is null");
  return out;
}

std::vector<ChatMessage> messages_of(const Element& value, const ConversationFields& fields) {
  simdjson::dom::array list;
  require(value.get(list) == simdjson::SUCCESS, ErrorKind::data, "\"{}\" is {}, not a list",
          fields.messages, json_type_name(value.type()));
  std::vector<ChatMessage> out;
  for (const Element element : list)
    out.push_back(message_of(json_object(element, "a message is "), fields));
  require(!out.empty(), ErrorKind::data, "\"{}\" is empty", fields.messages);
  return out;
}

// The members of a line that hold its conversation.
std::vector<std::string_view> used_members(bool has_messages, const ConversationFields& fields) {
  if (has_messages) return {fields.messages};
  return {fields.prompt, fields.response};
}

}  // namespace

Conversation conversation_of(const Object& line, const ConversationFields& fields,
                             bool needs_response) {
  Conversation out;
  std::optional<Element> messages = json_member(line, fields.messages);
  if (messages && messages->is_null()) messages.reset();
  if (messages) {
    out.messages = messages_of(*messages, fields);
  } else {
    const std::optional<Element> prompt = json_member(line, fields.prompt);
    require(prompt.has_value(), ErrorKind::data, "neither \"{}\" nor \"{}\"", fields.messages,
            fields.prompt);
    const std::optional<Element> response = json_member(line, fields.response);
    out.messages.push_back({"user", std::string(json_text(prompt, fields.prompt))});
    if (needs_response)
      out.messages.push_back({"assistant", std::string(json_text(response, fields.response))});
  }
  const std::vector<std::string_view> used = used_members(messages.has_value(), fields);
  for (const auto& [key, value] : line) {
    if (among(used, key) || value.is_null() || among(fields.ignored, key)) continue;
    require(among(conversation_extras, key), ErrorKind::usage,
            "a conversation has the field \"{}\", which has no meaning here; name the fields that "
            "may be left out with --ignore-fields {}",
            key, key);
    add_extra(out.extras, key, value);
  }
  return out;
}

Conversation parse_conversation(std::string_view json, const ConversationFields& fields,
                                bool needs_response, const std::string& place) {
  simdjson::dom::parser parser;
  try {
    const auto parsed = parser.parse(json.data(), json.size());
    require(parsed.error() == simdjson::SUCCESS, ErrorKind::data, "not valid JSON: {}",
            simdjson::error_message(parsed.error()));
    return conversation_of(json_object(parsed.value_unsafe(), ""), fields, needs_response);
  } catch (const Error& error) {
    if (place.empty()) throw;
    fail(error.kind(), "{}: {}", place, error.what());
  }
}

}  // namespace rankine

#pragma once
#include <simdjson.h>

#include <optional>
#include <string_view>

#include "base/error.h"
#include "data/chat/conversation.h"

// Members of JSON objects, for the readers of JSON lines. What is thrown here is Error{data} with
// the reason alone; who reads the line knows its place.
namespace rankine {

std::string_view json_type_name(simdjson::dom::element_type type);
// The member of that name, if there is one; of several the last counts, as in other readers.
std::optional<simdjson::dom::element> json_member(const simdjson::dom::object& object,
                                                  std::string_view name);
// Its text, which must be there and a string.
std::string_view json_text(const std::optional<simdjson::dom::element>& value,
                           std::string_view name);
// The object that `value` must be; `name` begins the message.
simdjson::dom::object json_object(const simdjson::dom::element& value, std::string_view name);

// As parse_conversation().
Conversation conversation_of(const simdjson::dom::object& line, const ConversationFields& fields,
                             bool needs_response);

}  // namespace rankine

#include "data/json_members.h"

namespace rankine {

using Element = simdjson::dom::element;
using Object = simdjson::dom::object;

std::string_view json_type_name(simdjson::dom::element_type type) {
  using enum simdjson::dom::element_type;
  switch (type) {
    case ARRAY:
      return "a list";
    case OBJECT:
      return "an object";
    case STRING:
      return "a string";
    case BOOL:
      return "true or false";
    case NULL_VALUE:
      return "null";
    default:
      return "a number";
  }
}

std::optional<Element> json_member(const Object& object, std::string_view name) {
  std::optional<Element> found;
  for (const auto& [key, value] : object)
    if (key == name) found = value;
  return found;
}

std::string_view json_text(const std::optional<Element>& value, std::string_view name) {
  std::string_view text;
  require(value.has_value(), ErrorKind::data, "no \"{}\"", name);
  require(value->get(text) == simdjson::SUCCESS, ErrorKind::data, "\"{}\" is {}, not a string",
          name, json_type_name(value->type()));
  return text;
}

Object json_object(const Element& value, std::string_view name) {
  Object object;
  require(value.get(object) == simdjson::SUCCESS, ErrorKind::data, "{}{}, not an object", name,
          json_type_name(value.type()));
  return object;
}

}  // namespace rankine

#include "data/json_lines.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "data/utf8_text.h"

namespace rankine {
namespace {

constexpr size_t most_faults = 5;

std::string_view reason_of(simdjson::error_code code) {
  switch (code) {
    case simdjson::STRING_ERROR:
      return "a string with a wrong escape or half a surrogate pair";
    case simdjson::UNESCAPED_CHARS:
      return "a string with a control character that is not escaped";
    case simdjson::UNCLOSED_STRING:
      return "a string that does not end";
    case simdjson::DEPTH_ERROR:
      return "more nested than 1024 levels";
    default:
      return "no JSON";
  }
}

std::string_view type_name(simdjson::dom::element_type type) {
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

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

struct JsonLines::Parser {
  simdjson::dom::parser json;
  std::string padded, valid;

  // The line with room behind it, which the parser reads but does not use.
  std::string_view with_room(std::string_view line, bool room_behind) {
    if (room_behind) return line;
    padded.assign(line).append(simdjson::SIMDJSON_PADDING, '\0');
    return std::string_view(padded).substr(0, line.size());
  }
  simdjson::simdjson_result<simdjson::dom::element> parse(std::string_view line, bool room_behind,
                                                          uint64_t& replaced) {
    const std::string_view text = with_room(line, room_behind);
    auto parsed = json.parse(text.data(), text.size(), false);
    if (parsed.error() != simdjson::UTF8_ERROR) return parsed;
    const std::string_view mended = with_room(valid_utf8(line, valid, replaced), false);
    return json.parse(mended.data(), mended.size(), false);
  }
};

JsonLines::JsonLines() : parser_(std::make_unique<Parser>()) {}
JsonLines::JsonLines(JsonLines&&) noexcept = default;
JsonLines::~JsonLines() = default;

namespace {

// The field's text, or why there is none.
struct Field {
  std::string_view text;
  std::string fault;
};

Field field_of(simdjson::simdjson_result<simdjson::dom::element> parsed, const std::string& field) {
  if (parsed.error() != simdjson::SUCCESS) return {{}, std::string(reason_of(parsed.error()))};
  simdjson::dom::object object;
  const simdjson::dom::element line = parsed.value_unsafe();
  if (line.get(object) != simdjson::SUCCESS)
    return {{}, fmt::format("{}, not an object", type_name(line.type()))};
  Field out;
  bool met = false;
  for (const auto& [key, value] : object) {
    if (key != field) continue;
    if (met) return {{}, fmt::format("\"{}\" is there twice", field)};
    met = true;
    if (value.get(out.text) != simdjson::SUCCESS)
      return {{}, fmt::format("\"{}\" is {}, not a string", field, type_name(value.type()))};
  }
  if (!met) out.fault = fmt::format("no \"{}\"", field);
  return out;
}

}  // namespace

void JsonLines::read_field(std::string_view piece, const std::string& field, LineCounts& counts,
                           const std::function<void(std::string_view)>& on_text) {
  for (size_t begin = 0; begin < piece.size();) {
    const void* found = std::memchr(piece.data() + begin, '\n', piece.size() - begin);
    const size_t end = found != nullptr
                           ? static_cast<size_t>(static_cast<const char*>(found) - piece.data())
                           : piece.size();
    const std::string_view line = piece.substr(begin, end - begin);
    const bool room_behind = piece.size() - end >= simdjson::SIMDJSON_PADDING;
    const uint64_t number = counts.lines++;
    begin = end + 1;
    if (is_blank(line)) {
      ++counts.blank;
      continue;
    }
    const Field found_field = field_of(parser_->parse(line, room_behind, counts.replaced), field);
    if (found_field.fault.empty()) {
      on_text(found_field.text);
      continue;
    }
    ++counts.bad;
    if (counts.faults.size() < most_faults) counts.faults.push_back({number, found_field.fault});
  }
}

}  // namespace rankine

#include "data/json_lines.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "data/json_members.h"
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

template <class OnLine>
void JsonLines::read_lines(std::string_view piece, LineCounts& counts, OnLine&& on_line) {
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
    try {
      const auto parsed = parser_->parse(line, room_behind, counts.replaced);
      if (parsed.error() != simdjson::SUCCESS)
        fail(ErrorKind::data, "{}", reason_of(parsed.error()));
      on_line(json_object(parsed.value_unsafe(), ""));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      ++counts.bad;
      if (counts.faults.size() < most_faults) counts.faults.push_back({number, error.what()});
    }
  }
}

void JsonLines::read_field(std::string_view piece, const std::string& field, LineCounts& counts,
                           const std::function<void(std::string_view)>& on_text) {
  read_lines(piece, counts, [&](const simdjson::dom::object& line) {
    on_text(json_text(json_member(line, field), field));
  });
}

void JsonLines::read_conversations(
    std::string_view piece, const ConversationFields& fields, LineCounts& counts,
    const std::function<void(const Conversation&)>& on_conversation) {
  read_lines(piece, counts, [&](const simdjson::dom::object& line) {
    on_conversation(conversation_of(line, fields, true));
  });
}

}  // namespace rankine

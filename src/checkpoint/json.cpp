#include "checkpoint/json.h"

#include <cmath>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/lfs_pointer.h"

namespace rankine {

using nlohmann::json;

json parse_json(std::string_view text, std::string_view what, RepeatedKeys repeated) {
  require(!is_lfs_pointer(text), ErrorKind::data, "{} is {}", what, lfs_pointer_text);
  // The parser takes a NUL for the end of its input and would not look at what follows.
  require(text.find('\0') == std::string_view::npos, ErrorKind::data, "{}: NUL byte at offset {}",
          what, text.find('\0'));
  constexpr int max_depth = 64;
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    require(depth <= max_depth, ErrorKind::data, "{}: nested more than {} levels deep", what,
            max_depth);
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && repeated == RepeatedKeys::refused)
      require(keys.back().insert(parsed.get_ref<const std::string&>()).second, ErrorKind::data,
              "{}: key {} occurs twice", what, json_excerpt(parsed));
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), watch);
  } catch (const json::exception& fault) {
    fail(ErrorKind::data, "{}: not valid JSON: {}", what, fault.what());
  }
}

std::string json_quoted(const std::string& text) {
  try {
    return json(text).dump();
  } catch (const json::exception&) {
    fail(ErrorKind::data, "a name is not valid UTF-8 and cannot be written as JSON");
  }
}

std::string json_excerpt(const json& value) {
  const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  constexpr size_t most = 40;
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

int64_t json_integer(const json& value, const std::string& name, int64_t lowest, int64_t highest) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
  require(fits, ErrorKind::data, "{} must be an integer, not {}", name, json_excerpt(value));
  const auto number = value.get<int64_t>();
  require(lowest <= number && number <= highest, ErrorKind::data, "{} is {}, it must lie in {}..{}",
          name, number, lowest, highest);
  return number;
}

JsonObject::JsonObject(const json& value, std::string_view what) : value_(&value), what_(what) {
  require(value.is_object(), ErrorKind::data, "{} must be an object, not {}", what_,
          json_excerpt(value));
}

const json* JsonObject::find(const char* key) const {
  const auto at = value_->find(key);
  return at == value_->end() || at->is_null() ? nullptr : &*at;
}

const json& JsonObject::at(const char* key) const {
  const json* value = find(key);
  require(value != nullptr, ErrorKind::data, "{} lacks '{}'", what_, key);
  return *value;
}

int64_t JsonObject::integer(const char* key, int64_t lowest, int64_t highest) const {
  return json_integer(at(key), fmt::format("{}: '{}'", what_, key), lowest, highest);
}

std::optional<int64_t> JsonObject::maybe_integer(const char* key, int64_t lowest,
                                                 int64_t highest) const {
  if (find(key) == nullptr) return std::nullopt;
  return integer(key, lowest, highest);
}

double JsonObject::number_or(const char* key, double fallback) const {
  const json* value = find(key);
  if (value == nullptr) return fallback;
  require(value->is_number() && std::isfinite(value->get<double>()), ErrorKind::data,
          "{}: '{}' must be a number, not {}", what_, key, json_excerpt(*value));
  return value->get<double>();
}

bool JsonObject::flag_or(const char* key, bool fallback) const {
  const json* value = find(key);
  if (value == nullptr) return fallback;
  require(value->is_boolean(), ErrorKind::data, "{}: '{}' must be true or false, not {}", what_,
          key, json_excerpt(*value));
  return value->get<bool>();
}

const std::string& JsonObject::text(const char* key) const {
  const json& value = at(key);
  require(value.is_string(), ErrorKind::data, "{}: '{}' must be a string, not {}", what_, key,
          json_excerpt(value));
  return value.get_ref<const std::string&>();
}

std::string JsonObject::text_or(const char* key, const std::string& fallback) const {
  return find(key) == nullptr ? fallback : text(key);
}

const json& JsonObject::array(const char* key) const {
  const json& value = at(key);
  require(value.is_array(), ErrorKind::data, "{}: '{}' must be an array, not {}", what_, key,
          json_excerpt(value));
  return value;
}

}  // namespace rankine

#include "data/tokenizer/json_place.h"

#include <unordered_set>
#include <vector>

#include "base/lfs_pointer.h"

namespace rankine {

using nlohmann::json;

json parse_tokenizer_json(std::string_view text, const std::string& file) {
  require(!is_lfs_pointer(text), ErrorKind::data, "'{}' is {}", file, lfs_pointer_text);
  // The parser takes a NUL for the end of its input and would not look at what follows.
  require(text.find('\0') == std::string_view::npos, ErrorKind::data, "'{}': NUL byte at offset {}",
          file, text.find('\0'));
  constexpr int max_depth = 64;
  std::vector<std::unordered_set<std::string>> keys;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    require(depth <= max_depth, ErrorKind::data, "'{}': nested more than {} levels deep", file,
            max_depth);
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key)
      require(keys.back().insert(parsed.get_ref<const std::string&>()).second, ErrorKind::data,
              "'{}': key '{}' occurs twice", file, parsed.get_ref<const std::string&>());
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), watch);
  } catch (const json::exception& fault) {
    fail(ErrorKind::data, "'{}': not valid JSON: {}", file, fault.what());
  }
}

std::string JsonPlace::name() const {
  return path_.empty() ? fmt::format("'{}'", *file_) : fmt::format("'{}': {}", *file_, path_);
}

JsonPlace JsonPlace::child(const json& value, std::string_view key) const {
  JsonPlace out(value, *file_);
  out.path_ = path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  return out;
}

JsonPlace JsonPlace::child(const json& value, size_t index) const {
  JsonPlace out(value, *file_);
  out.path_ = fmt::format("{}[{}]", path_, index);
  return out;
}

std::string JsonPlace::excerpt() const {
  const std::string text = value_->dump(-1, ' ', true, json::error_handler_t::replace);
  constexpr size_t most = 60;
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

const std::string& JsonPlace::text() const {
  need(value_->is_string(), "must be a string, not {}", excerpt());
  return value_->get_ref<const std::string&>();
}

bool JsonPlace::flag() const {
  need(value_->is_boolean(), "must be true or false, not {}", excerpt());
  return value_->get<bool>();
}

int64_t JsonPlace::integer(int64_t lowest, int64_t highest) const {
  const bool fits = value_->is_number_integer() &&
                    (!value_->is_number_unsigned() || value_->get<uint64_t>() <= INT64_MAX);
  need(fits, "must be an integer, not {}", excerpt());
  const auto number = value_->get<int64_t>();
  need(lowest <= number && number <= highest, "is {}, it must lie in {}..{}", number, lowest,
       highest);
  return number;
}

const json& JsonPlace::array() const {
  need(value_->is_array(), "must be an array, not {}", excerpt());
  return *value_;
}

JsonMembers::JsonMembers(JsonPlace place) : place_(std::move(place)) {
  place_.need(place_.value().is_object(), "must be an object, not {}", place_.excerpt());
}

bool JsonMembers::has(const char* key) const {
  const auto at = place_.value().find(key);
  return at != place_.value().end() && !at->is_null();
}

JsonPlace JsonMembers::at(const char* key) {
  read_.insert(key);
  const auto at = place_.value().find(key);
  place_.need(at != place_.value().end(), "lacks '{}'", key);
  return place_.child(*at, key);
}

std::string JsonMembers::text_or(const char* key, std::string_view fallback) {
  read_.insert(key);
  return has(key) ? at(key).text() : std::string(fallback);
}

bool JsonMembers::flag_or(const char* key, bool fallback) {
  read_.insert(key);
  return has(key) ? at(key).flag() : fallback;
}

void JsonMembers::finish() const {
  for (const auto& [key, value] : place_.value().items())
    if (!read_.contains(key)) place_.child(value, key).refuse("this key is not understood");
}

}  // namespace rankine

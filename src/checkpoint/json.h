#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

// JSON from files nobody vouches for. Rule: every fault becomes Error{data} that names its place.
namespace rankine {

enum class RepeatedKeys : uint8_t { refused, last_counts };
// Strict parsing: valid UTF-8, one value, at most 64 levels, no key twice in one object unless told
// otherwise.
nlohmann::json parse_json(std::string_view text, std::string_view what,
                          RepeatedKeys repeated = RepeatedKeys::refused);

// `text` between quotes with everything JSON wants escaped.
std::string json_quoted(const std::string& text);

// An object whose members are read with type and range checks. Null counts as absent.
class JsonObject {
 public:
  // Error{data} when `value` is no object. Both arguments must outlive this view.
  JsonObject(const nlohmann::json& value, std::string_view what);

  const std::string& what() const { return what_; }
  const nlohmann::json* find(const char* key) const;  // null pointer when absent
  const nlohmann::json& at(const char* key) const;    // Error{data} when absent
  int64_t integer(const char* key, int64_t lowest, int64_t highest) const;
  std::optional<int64_t> maybe_integer(const char* key, int64_t lowest, int64_t highest) const;
  double number_or(const char* key, double fallback) const;  // finite
  bool flag_or(const char* key, bool fallback) const;
  const std::string& text(const char* key) const;
  std::string text_or(const char* key, const std::string& fallback) const;
  const nlohmann::json& array(const char* key) const;

 private:
  const nlohmann::json* value_;
  std::string what_;
};

// `value` as an integer within [lowest, highest]; `name` is for the message.
int64_t json_integer(const nlohmann::json& value, const std::string& name, int64_t lowest,
                     int64_t highest);
// A value as people see it, cut to 40 characters, for messages.
std::string json_excerpt(const nlohmann::json& value);

}  // namespace rankine

#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"

// JSON whose every fault names file and place. Rule: what is not asked for is refused by name.
namespace rankine {

// Strict parsing: valid UTF-8, one value, at most 64 levels, no key twice in one object.
nlohmann::json parse_tokenizer_json(std::string_view text, const std::string& file);

// A value and where it stands: "'tokenizer.json': model.merges[3]".
class JsonPlace {
 public:
  // Both must outlive this place and all below it.
  JsonPlace(const nlohmann::json& value, const std::string& file) : value_(&value), file_(&file) {}

  const nlohmann::json& value() const { return *value_; }
  std::string name() const;  // for messages
  JsonPlace child(const nlohmann::json& value, std::string_view key) const;
  JsonPlace child(const nlohmann::json& value, size_t index) const;

  template <class... Args>
  void need(bool ok, fmt::format_string<Args...> format, Args&&... args) const {
    if (!ok) refuse("{}", fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::data, "{}: {}", name(), fmt::format(format, std::forward<Args>(args)...));
  }

  // The value, which must be of this type.
  const std::string& text() const;
  bool flag() const;
  int64_t integer(int64_t lowest, int64_t highest) const;
  const nlohmann::json& array() const;
  std::string excerpt() const;  // the value, cut to 60 characters, for messages

 private:
  const nlohmann::json* value_;
  const std::string* file_;
  std::string path_;
};

// The members of an object, each asked for once; finish() refuses the others.
class JsonMembers {
 public:
  explicit JsonMembers(JsonPlace place);

  const JsonPlace& place() const { return place_; }
  bool has(const char* key) const;  // null counts as absent
  JsonPlace at(const char* key);    // must be there; may be null
  std::string text_or(const char* key, std::string_view fallback);
  bool flag_or(const char* key, bool fallback);
  void skip(const char* key) { read_.insert(key); }  // says nothing about ids or text
  void finish() const;

 private:
  JsonPlace place_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace rankine

#include "library/outputs.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace rankine {

void require_replaceable(const std::filesystem::path& file, std::string_view option,
                         bool (*own)(const std::string& text)) {
  if (file.empty() || !is_there(file)) return;
  const bool plain = std::filesystem::is_regular_file(std::filesystem::symlink_status(file));
  const bool replaceable = plain && [&] {
    const std::string text = read_text(file);
    return text.empty() || own(text);
  }();
  require(replaceable, ErrorKind::usage,
          "--{} '{}' is there already and {}; choose another name, or move it away", option,
          file.string(), plain ? "was not written by Rankine" : "is no plain file");
}

bool is_own_report(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  return json.is_object() && json.value(report_key, nlohmann::json()) == report_program;
}

}  // namespace rankine

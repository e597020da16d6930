#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace rankine {

// Refuses, before any work is done, to replace what Rankine did not write: Error{usage} unless the
// file is absent, empty, or `own` knows its text.
void require_replaceable(const std::filesystem::path& file, std::string_view option,
                         bool (*own)(const std::string& text));

// A report says who wrote it: {"written_by": "rankine", ...}.
inline constexpr const char *report_key = "written_by", *report_program = "rankine";
bool is_own_report(const std::string& text);

}  // namespace rankine

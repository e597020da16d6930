#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "template/template.h"
#include "template/template_json.h"

// Templates, what they are given, and what comes of them, in this program and in others.
namespace rankine::test {

using OrderedJson = nlohmann::ordered_json;

// What render.py and render.mjs beside the cases take for the present.
constexpr int64_t template_time = 1'700'000'000;

inline std::filesystem::path template_folder() {
  return std::filesystem::path(RANKINE_SOURCE_DIR) / "tests/support/templates";
}

inline OrderedJson template_file(const std::string& name) {
  return OrderedJson::parse(read_text(template_folder() / name));
}

// Variables of a JSON object, all its texts with that origin.
inline TemplateVariables template_variables(const OrderedJson& object, uint32_t origin = 1) {
  TemplateVariables variables;
  variables.unix_time = template_time;
  for (const auto& [name, value] : object.items())
    variables.values[name] = template_value(value, origin);
  return variables;
}

// {"output": text} or {"error": message}, as the scripts print it; fails for an error of another
// kind and for spans that do not cover the text.
inline OrderedJson template_result(const std::string& text, const OrderedJson& variables) {
  try {
    const MarkedText rendered = Template::parse(text, "t").render(template_variables(variables));
    size_t covered = 0;
    for (const TextSpan& span : rendered.spans()) covered += span.bytes;
    EXPECT_EQ(covered, rendered.size()) << text;
    return {{"output", rendered.text()}};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data) << text << ": " << error.what();
    EXPECT_NE(std::string(error.what()).find("'t': line "), std::string::npos) << error.what();
    return {{"error", error.what()}};
  }
}

// The same text, or an error in both.
inline bool template_results_agree(const OrderedJson& one, const OrderedJson& other) {
  if (one.contains("error") || other.contains("error"))
    return one.contains("error") && other.contains("error");
  return one.at("output") == other.at("output");
}

}  // namespace rankine::test

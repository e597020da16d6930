#pragma once
#include <string>
#include <string_view>
#include <vector>

// The part of TOML that configurations use: `name = value` lines with strings, numbers, booleans
// and arrays of them. Values come out as texts; what they mean is the option table's business.
namespace rankine {

struct TomlEntry {
  std::string key;
  std::vector<std::string> values;
  bool is_array = false;
  int line = 0;
};

struct TomlFault {
  int line = 0;
  std::string text;
};

struct TomlText {
  std::vector<TomlEntry> entries;
  std::vector<TomlFault> faults;  // lines that were skipped
};

TomlText read_toml(std::string_view text);

// The text as a TOML string, quotes included.
std::string toml_string(std::string_view text);

}  // namespace rankine

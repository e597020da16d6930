#include <algorithm>

#include "base/options.h"
#include "base/toml.h"

namespace rankine {
namespace {

constexpr size_t page_width = 100, help_column = 34;

std::string toml_value(const Option& option, const std::vector<std::string>& texts) {
  const auto shown = [&](const std::string& text) {
    return option.quoted ? toml_string(text) : text;
  };
  if (!option.is_list) return shown(texts.at(0));
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + shown(text);
  return '[' + out + ']';
}

std::string default_words(const Option& option) {
  std::string out;
  for (const std::string& text : option.standard) out += (out.empty() ? "" : " ") + text;
  return out;
}

std::string option_help(const Option& option) {
  std::string out = option.help;
  std::string notes;
  const auto note = [&](const std::string& text) { notes += (notes.empty() ? "" : "; ") + text; };
  const std::string standard = default_words(option);
  if (!option.is_positional && !standard.empty()) note("default " + standard);
  for (size_t i = 1; i < option.names.size(); ++i)
    note((option.names[i].size() == 1 ? "also -" : "also --") + option.names[i]);
  return notes.empty() ? out : fmt::format("{} ({})", out, notes);
}

std::string option_names(const Option& option) {
  if (option.is_positional) return option.names[0];
  if (option.is_flag) return fmt::format("--{}, --no-{}", option.names[0], option.names[0]);
  return fmt::format("--{} {}{}", option.names[0], option.metavar, option.is_list ? " ..." : "");
}

// Words of `text` in lines from column `indent` on; the first line starts at column `at`.
void append_wrapped(std::string& out, std::string_view text, size_t at, size_t indent) {
  size_t column = at;
  while (!text.empty()) {
    const size_t length = std::min(text.find(' '), text.size());
    if (column > indent && column + 1 + length > page_width) {
      out += '\n';
      column = 0;
    }
    if (column < indent) {
      out.append(indent - column, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += text.substr(0, length);
    column += length;
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  out += '\n';
}

void append_entry(std::string& out, const std::string& names, const std::string& help) {
  out += "  " + names;
  size_t column = names.size() + 2;
  if (column + 2 > help_column) {
    out += '\n';
    column = 0;
  }
  append_wrapped(out, help, column, help_column);
}

std::string_view origin_name(OptionOrigin origin) {
  return origin == OptionOrigin::standard ? "default"
         : origin == OptionOrigin::file   ? "file"
         : origin == OptionOrigin::stored ? "stored"
                                          : "command line";
}

TomlText stored_text(std::string_view stored) {
  TomlText toml = read_toml(stored);
  if (!toml.faults.empty())
    fail(ErrorKind::data, "stored configuration, line {}: {}", toml.faults[0].line,
         toml.faults[0].text);
  return toml;
}

}  // namespace

std::string help_text(const OptionTable& table, std::string_view command,
                      std::string_view description) {
  std::string usage = fmt::format("usage: {}", command);
  for (const Option& option : table.options())
    if (option.is_positional) usage += ' ' + option.names[0];
  std::string out = usage + " [options]\n\n";
  append_wrapped(out, description, 0, 0);
  std::string group;
  for (const bool positional : {true, false})
    for (const Option& option : table.options()) {
      if (option.is_positional != positional) continue;
      const std::string title = positional             ? "arguments"
                                : option.group.empty() ? "options"
                                                       : option.group;
      if (title != group) out += fmt::format("\n{}:\n", title);
      group = title;
      append_entry(out, option_names(option), option_help(option));
    }
  out += "\ngeneral:\n";
  append_entry(out, "--config PATH",
               "read options from this TOML file; the command line goes first");
  append_entry(out, "--help", "show this page (also -h)");
  return out;
}

std::string to_toml(const OptionTable& table) {
  std::string out, group;
  for (const Option& option : table.options()) {
    if (!option.stored) continue;
    if (option.group != group)
      out += fmt::format("{}# {}\n", out.empty() ? "" : "\n", option.group);
    group = option.group;
    out += fmt::format("{} = {}  # {}\n", option.names[0], toml_value(option, option.current()),
                       origin_name(option.origin));
  }
  return out;
}

void read_stored(std::string_view stored, OptionTable& table) {
  for (const TomlEntry& entry : stored_text(stored).entries) {
    Option* option = table.find(entry.key);
    if (option == nullptr) continue;
    std::vector<std::string> texts;
    for (const std::string& value : entry.values) {
      Option::Conversion conversion = option->convert(value);
      require(conversion.fault.empty(), ErrorKind::data, "stored configuration, line {}: {}: {}",
              entry.line, entry.key, conversion.fault);
      texts.push_back(std::move(conversion.text));
    }
    require(option->is_list || texts.size() == 1, ErrorKind::data,
            "stored configuration, line {}: {} has {} values in place of one", entry.line,
            entry.key, texts.size());
    option->store(texts);
  }
}

std::vector<OptionDifference> compare(std::string_view stored, const OptionTable& table) {
  const TomlText toml = stored_text(stored);
  std::vector<OptionDifference> out;
  for (const Option& option : table.options()) {
    if (!option.stored) continue;
    std::vector<std::string> before = option.standard;
    for (const TomlEntry& entry : toml.entries) {
      if (table.find(entry.key) != &option) continue;
      before.clear();
      for (const std::string& value : entry.values) {
        const Option::Conversion conversion = option.convert(value);
        before.push_back(conversion.fault.empty() ? conversion.text : value);
      }
      if (!option.is_list && before.size() != 1)
        fail(ErrorKind::data, "stored configuration, line {}: {} has {} values in place of one",
             entry.line, entry.key, before.size());
    }
    const std::vector<std::string> now = option.current();
    if (before != now)
      out.push_back({option.names[0], toml_value(option, before), toml_value(option, now)});
  }
  for (const TomlEntry& entry : toml.entries) {
    if (table.find(entry.key) != nullptr) continue;
    std::string shown;
    for (const std::string& value : entry.values) shown += (shown.empty() ? "" : ", ") + value;
    out.push_back({entry.key, shown, ""});
  }
  return out;
}

}  // namespace rankine

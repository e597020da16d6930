#include <CLI/CLI.hpp>
#include <map>

#include "base/file.h"
#include "base/options.h"
#include "base/toml.h"

namespace rankine {
namespace {

// What was written, before anything is converted.
struct RawArguments {
  std::map<std::string, std::vector<std::string>> values;  // by option name; config and help too
  std::vector<std::string> rest;
  std::vector<std::string> faults;
};

constexpr int most_values = 1 << 20;  // of one occurrence of an option

struct Written {
  std::string place;  // "--steps", "run.toml:3: steps"
  std::vector<std::string> values;
  OptionOrigin origin;
};

std::string typed(std::string_view name) {
  return fmt::format("{}{}", name.size() == 1 ? "-" : "--", name);
}

std::string unknown(std::string_view shown, std::string_view near, std::string_view what) {
  return near.empty() ? fmt::format("{}: unknown {}; see --help", shown, what)
                      : fmt::format("{}: unknown {}; did you mean {}?", shown, what, near);
}

bool takes_value(const OptionTable& table, std::string_view argument) {
  const std::string_view name = argument.substr(2);
  const Option* option = table.find(name);
  return name == "config" || (option != nullptr && !option->is_flag && !option->is_positional);
}

// '_' in names becomes '-'; "--name=" becomes "--name" and an empty value, which CLI11 would take
// from the next argument. An option in the place of a value is a fault and left out.
std::vector<std::string> spelled_out(const OptionTable& table,
                                     const std::vector<std::string>& arguments,
                                     std::vector<std::string>& faults) {
  std::vector<std::string> out;
  bool names = true;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string argument = arguments[i];
    if (argument == "--") names = false;
    if (!names || !argument.starts_with("--")) {
      out.push_back(std::move(argument));
      continue;
    }
    const size_t equals = std::min(argument.find('='), argument.size());
    std::replace(argument.begin(), argument.begin() + static_cast<std::ptrdiff_t>(equals), '_',
                 '-');
    const bool last = i + 1 == arguments.size();
    const bool before_option = !last && arguments[i + 1].starts_with("--") &&
                               table.find(arguments[i + 1].substr(2)) != nullptr;
    const bool empty = equals + 1 == argument.size();
    if (empty) argument.pop_back();
    if (!empty && takes_value(table, argument) && (last || before_option)) {
      faults.push_back(fmt::format("{}: needs a value", argument));
      continue;
    }
    out.push_back(std::move(argument));
    if (empty) out.emplace_back();
  }
  return out;
}

std::string cli_names(const Option& option) {
  std::string out;
  for (const std::string& name : option.names) {
    out += (out.empty() ? "" : ",") + typed(name);
    if (option.is_flag) out += ",!--no-" + name;
  }
  return out;
}

RawArguments read_arguments(const OptionTable& table, const std::vector<std::string>& arguments) {
  CLI::App app;
  app.allow_extras();
  app.set_help_flag();
  std::map<std::string, CLI::Option*> known;
  known["help"] = app.add_flag("--help,-h");
  known["config"] = app.add_option("--config")->expected(1)->allow_extra_args(false);
  for (const Option& option : table.options()) {
    if (option.is_positional) continue;
    CLI::Option* cli =
        option.is_flag ? app.add_flag(cli_names(option)) : app.add_option(cli_names(option));
    if (!option.is_flag) cli->expected(1, option.is_list ? most_values : 1);
    cli->allow_extra_args(false);  // else CLI11 takes "[a,b]" apart
    known[option.names[0]] = cli;
  }
  for (const auto& [name, cli] : known) cli->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);

  RawArguments raw;
  const std::vector<std::string> written = spelled_out(table, arguments, raw.faults);
  try {
    app.parse(std::vector<std::string>(written.rbegin(), written.rend()));
  } catch (const CLI::Error& error) {
    raw.faults.emplace_back(error.what());
  }
  for (const auto& [name, cli] : known)
    if (cli->count() > 0) raw.values[name] = cli->results();
  raw.rest = app.remaining();
  return raw;
}

// Gives the arguments without a name to the positionals; all others are faults.
void take_rest(const OptionTable& table, RawArguments& raw) {
  std::vector<std::string> loose;
  bool after_unknown = false, names = true;
  for (const std::string& argument : raw.rest) {
    if (argument == "--") {
      names = false;
    } else if (names && argument.size() > 1 && argument[0] == '-') {
      const std::string shown = argument.substr(0, argument.find('='));
      const std::string near = table.nearest(shown.substr(shown[1] == '-' ? 2 : 1));
      raw.faults.push_back(unknown(shown, near.empty() ? "" : typed(near), "option"));
      after_unknown = shown == argument;
    } else if (!std::exchange(after_unknown, false)) {  // else most likely the value of that option
      loose.push_back(argument);
    }
  }
  auto next = loose.begin();
  for (const Option& option : table.options()) {
    if (!option.is_positional) continue;
    if (next != loose.end())
      raw.values[option.names[0]] = {*next++};
    else
      raw.faults.push_back(fmt::format("{} is missing: {}", option.names[0], option.help));
  }
  for (; next != loose.end(); ++next)
    raw.faults.push_back(fmt::format("'{}': unexpected argument; see --help", *next));
}

void take_stored(const OptionTable& table, const StoredOptions& stored, OptionOrigin origin,
                 std::map<std::string, Written>& written, std::vector<std::string>& faults) {
  const TomlText toml = read_toml(stored.text);
  for (const TomlFault& fault : toml.faults)
    faults.push_back(fmt::format("{}:{}: {}", stored.place, fault.line, fault.text));
  for (const TomlEntry& entry : toml.entries) {
    const std::string place = fmt::format("{}:{}: {}", stored.place, entry.line, entry.key);
    const Option* option = table.find(entry.key);
    if (option == nullptr || option->is_positional) {
      faults.push_back(unknown(place, table.nearest(entry.key), "key"));
    } else if (written.contains(option->names[0])) {
      faults.push_back(fmt::format("{}: given a second time; the first is {}", place,
                                   written.at(option->names[0]).place));
    } else if (!option->is_list && entry.is_array) {
      faults.push_back(fmt::format("{}: a list of {} values; this option takes one value", place,
                                   entry.values.size()));
    } else {
      written[option->names[0]] = {place, entry.values, origin};
    }
  }
}

void read_config(const OptionTable& table, const std::filesystem::path& path,
                 std::map<std::string, Written>& written, std::vector<std::string>& faults) {
  try {
    take_stored(table, {read_text(path, uint64_t{1} << 24), path.string()}, OptionOrigin::file,
                written, faults);
  } catch (const Error& error) {
    faults.push_back(fmt::format("--config: {}", error.what()));
  }
}

// Converts what is written for one option; the canonical texts.
std::vector<std::string> convert_all(const Option& option, const Written& written,
                                     std::vector<std::string>& faults) {
  std::vector<std::string> texts;
  for (const std::string& value : written.values) {
    Option::Conversion conversion = option.convert(value);
    if (!conversion.fault.empty())
      faults.push_back(fmt::format("{}: {}", written.place, conversion.fault));
    texts.push_back(std::move(conversion.text));
  }
  if (!option.is_list && texts.size() > 1) texts.erase(texts.begin(), texts.end() - 1);
  return texts;
}

void fail_with(const std::vector<std::string>& faults) {
  if (faults.size() == 1) throw Error(ErrorKind::usage, faults[0]);
  std::string all = fmt::format("{} faults in the options:", faults.size());
  for (const std::string& fault : faults) all += "\n  " + fault;
  throw Error(ErrorKind::usage, all);
}

}  // namespace

ParsedOptions parse_options(OptionTable& table, const std::vector<std::string>& arguments,
                            const StoredOptions& stored) {
  RawArguments raw = read_arguments(table, arguments);
  if (raw.values.contains("help")) return {.help = true, .config = {}};
  take_rest(table, raw);

  ParsedOptions parsed;
  std::map<std::string, Written> written;
  if (const auto config = raw.values.find("config"); config != raw.values.end()) {
    parsed.config = config->second.back();
    read_config(table, parsed.config, written, raw.faults);
  } else {
    take_stored(table, stored, OptionOrigin::stored, written, raw.faults);
  }
  for (auto& [name, values] : raw.values) {
    const Option* option = table.find(name);
    if (option == nullptr) continue;
    const std::string place = option->is_positional ? name : typed(name);
    written[name] = {place, std::move(values), OptionOrigin::command_line};
  }

  std::map<std::string, std::vector<std::string>> texts;
  for (const Option& option : table.options())
    if (const auto found = written.find(option.names[0]); found != written.end())
      texts[option.names[0]] = convert_all(option, found->second, raw.faults);
  if (!raw.faults.empty()) fail_with(raw.faults);

  for (Option& option : table.options()) {
    const auto found = written.find(option.names[0]);
    option.origin = found == written.end() ? OptionOrigin::standard : found->second.origin;
    if (found != written.end()) option.store(texts.at(option.names[0]));
  }
  return parsed;
}

}  // namespace rankine

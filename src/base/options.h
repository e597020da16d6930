#pragma once
#include <fmt/core.h>

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"

// Options are declared once, in a table of names bound to plain variables; parsing, help, storing
// and comparing all read that table. A variable's value at its declaration is the default, and it
// must outlive the table. Names are spelled with '-'; '_' is accepted wherever a name is read.
namespace rankine {

// What stands behind a command's name.
using CommandArguments = std::vector<std::string>;

struct IntegerRange {
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();
};

struct RealRange {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above_least = false;  // `least` itself is not legal
};

// `stored`: from the configuration that a run keeps, which names every option.
enum class OptionOrigin : uint8_t { standard, file, stored, command_line };

// One row of a table. Values travel as texts in one canonical spelling.
struct Option {
  struct Conversion {
    std::string text;   // canonical
    std::string fault;  // "'x' is not an integer; give ...", empty when legal
  };
  std::vector<std::string> names;  // the first is the name, the others are aliases
  std::string metavar, help, group;
  bool is_flag = false, is_list = false, is_positional = false;
  bool quoted = false;  // written as a TOML string
  bool stored = true;
  std::function<Conversion(std::string_view)> convert;
  std::function<std::vector<std::string>()> current;
  std::function<void(const std::vector<std::string>&)> store;  // canonical texts
  std::vector<std::string> standard;                           // the default
  OptionOrigin origin = OptionOrigin::standard;
};

class OptionTable {
 public:
  using Names = std::vector<std::string>;

  // Options declared from here on stand under this heading in help and files.
  void heading(std::string title) { group_ = std::move(title); }

  template <std::integral T>
  void integer(Names names, T* value, std::string help, IntegerRange range = {}) {
    if (!std::in_range<T>(range.least)) range.least = lowest<T>();
    if (!std::in_range<T>(range.most)) range.most = highest<T>();
    Option option = integer_option(range);
    option.current = [value] { return std::vector{fmt::format("{}", *value)}; };
    option.store = [value](const std::vector<std::string>& texts) {
      *value = static_cast<T>(integer_value(texts.at(0)));
    };
    add(std::move(option), std::move(names), std::move(help));
  }

  template <std::floating_point T>
  void real(Names names, T* value, std::string help, RealRange range = {}) {
    Option option = real_option(range);
    option.current = [value] { return std::vector{fmt::format("{}", *value)}; };
    option.store = [value](const std::vector<std::string>& texts) {
      *value = static_cast<T>(real_value(texts.at(0)));
    };
    add(std::move(option), std::move(names), std::move(help));
  }

  // One of the named values, which all differ.
  template <class Value>
  void choice(Names names, Value* value,
              std::vector<std::pair<std::string, std::type_identity_t<Value>>> choices,
              std::string help) {
    std::vector<std::string> words;
    words.reserve(choices.size());
    for (const auto& [word, meaning] : choices) words.push_back(word);
    Option option = choice_option(std::move(words));
    option.current = [value, choices] {
      for (const auto& [word, meaning] : choices)
        if (meaning == *value) return std::vector{word};
      fail(ErrorKind::internal, "a choice option holds none of its choices");
    };
    option.store = [value, choices](const std::vector<std::string>& texts) {
      for (const auto& [word, meaning] : choices)
        if (word == texts.at(0)) *value = meaning;
    };
    add(std::move(option), std::move(names), std::move(help));
  }

  // --name and --no-name; true and false in a file.
  void flag(Names names, bool* value, std::string help);
  void text(Names names, std::string* value, std::string help, std::string metavar = "TEXT");
  void path(Names names, std::filesystem::path* value, std::string help);
  void bytes(Names names, uint64_t* value, std::string help);  // "2GiB", "512MiB", "4096"
  // Several values: --name A B, or the option repeated. The command line replaces a file's list.
  void texts(Names names, std::vector<std::string>* value, std::string help,
             std::string metavar = "TEXT");
  void paths(Names names, std::vector<std::filesystem::path>* value, std::string help);
  // Arguments without a name, in order of declaration; all must be given. Never stored.
  void positional(std::string metavar, std::filesystem::path* value, std::string help);
  void positional(std::string metavar, std::string* value, std::string help);

  // This option is about one run only and does not go into a stored configuration.
  void do_not_store(std::string_view name);

  const std::vector<Option>& options() const { return options_; }
  std::vector<Option>& options() { return options_; }
  // The named option (any alias, '_' or '-'), or null.
  Option* find(std::string_view name);
  const Option* find(std::string_view name) const;
  // The nearest known name, or "" when none is near.
  std::string nearest(std::string_view name) const;
  OptionOrigin origin(std::string_view name) const;  // the name must be declared
  // Whether a user asks for it: on the command line, or in a file with another value than the
  // default.
  bool given(std::string_view name) const;

 private:
  template <class T>
  static constexpr int64_t lowest() {
    return static_cast<int64_t>(std::numeric_limits<T>::min());
  }
  template <class T>
  static constexpr int64_t highest() {
    constexpr auto most = std::numeric_limits<T>::max();
    return std::in_range<int64_t>(most) ? static_cast<int64_t>(most)
                                        : std::numeric_limits<int64_t>::max();
  }
  static Option integer_option(IntegerRange range);
  static Option real_option(RealRange range);
  static Option choice_option(std::vector<std::string> words);
  static int64_t integer_value(const std::string& canonical);
  static double real_value(const std::string& canonical);
  void add(Option option, Names names, std::string help);

  std::vector<Option> options_;
  std::string group_;
};

struct ParsedOptions {
  bool help = false;  // --help was given; nothing else was read
  std::filesystem::path config;
};

// A run's own configuration, as to_toml writes it; its values get the origin `stored`.
struct StoredOptions {
  std::string text, place;  // place: for messages
};

// Fills the table's variables: defaults, then `--config FILE` or `stored`, then `arguments`
// (without the program's name). On faults nothing is changed and one Error{usage} lists them all.
ParsedOptions parse_options(OptionTable& table, const std::vector<std::string>& arguments,
                            const StoredOptions& stored = {});

// Error{usage} that lists those of `names` that are declared and given: "--a has no effect
// <where>; leave it out".
void refuse_without_effect(const OptionTable& table, const std::vector<std::string_view>& names,
                           std::string_view where);

// The help page of a command, at most 100 columns wide.
std::string help_text(const OptionTable& table, std::string_view command,
                      std::string_view description);

// The configuration as TOML, one option a line with its origin; reading it gives the same values.
std::string to_toml(const OptionTable& table);

struct OptionDifference {
  std::string name;
  std::string stored;   // as TOML; "" when `stored` knows no such option or default
  std::string current;  // as TOML; "" when the table knows no such option
};
// Fills the table's variables from a stored configuration; names that the table lacks are passed
// over. Error{data} when it cannot be read.
void read_stored(std::string_view stored, OptionTable& table);

// Where a stored configuration and the current values differ, in order of the table. An option
// that the stored one lacks counts as its default. Error{data} when `stored` cannot be read.
std::vector<OptionDifference> compare(std::string_view stored, const OptionTable& table);

}  // namespace rankine

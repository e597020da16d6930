#include "base/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace rankine {
namespace {

using Conversion = Option::Conversion;

bool is_digit(char c) {
  return '0' <= c && c <= '9';
}

// "1_000" and "+5" as TOML allows them.
std::string plain_number(std::string_view text) {
  std::string digits(text);
  for (size_t i = digits.size(); i-- > 1;)
    if (digits[i] == '_' && i + 1 < digits.size() && is_digit(digits[i - 1]) &&
        is_digit(digits[i + 1]))
      digits.erase(i, 1);
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.erase(0, 1);
  return digits;
}

template <class T>
std::errc read_number(std::string_view text, T& value) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status == std::errc() && end != text.data() + text.size()) return std::errc::invalid_argument;
  return status;
}

std::string rule(IntegerRange range) {
  const IntegerRange all;
  const bool low = range.least > all.least, high = range.most < all.most;
  if (low && high) return fmt::format("an integer from {} to {}", range.least, range.most);
  if (low) return fmt::format("an integer of at least {}", range.least);
  if (high) return fmt::format("an integer of at most {}", range.most);
  return "an integer";
}

std::string rule(RealRange range) {
  const std::string low =
      fmt::format("{} {}", range.above_least ? "above" : "of at least", range.least);
  const bool bounded_low = std::isfinite(range.least), bounded_high = std::isfinite(range.most);
  if (bounded_low && bounded_high)
    return fmt::format("a number {} and at most {}", low, range.most);
  if (bounded_low) return "a number " + low;
  if (bounded_high) return fmt::format("a number of at most {}", range.most);
  return "a number";
}

Conversion convert_integer(std::string_view text, IntegerRange range) {
  int64_t value = 0;
  const std::errc status = read_number(plain_number(text), value);
  if (status == std::errc::invalid_argument)
    return {"", fmt::format("'{}' is not an integer; give {}", text, rule(range))};
  if (status == std::errc() && range.least <= value && value <= range.most)
    return {fmt::format("{}", value), ""};
  const bool below = status == std::errc() ? value < range.least : text.starts_with('-');
  return {"", fmt::format("{} is out of range; give {} (nearest legal value {})", text, rule(range),
                          below ? range.least : range.most)};
}

Conversion convert_real(std::string_view text, RealRange range) {
  double value = 0;
  const std::errc status = read_number(plain_number(text), value);
  if (status != std::errc() || !std::isfinite(value))
    return {"", fmt::format("'{}' is not a finite number; give {}", text, rule(range))};
  const bool low = range.above_least ? value <= range.least : value < range.least;
  if (!low && value <= range.most) return {fmt::format("{}", value), ""};
  if (low && range.above_least)
    return {"", fmt::format("{} is out of range; give {}", text, rule(range))};
  return {"", fmt::format("{} is out of range; give {} (nearest legal value {})", text, rule(range),
                          low ? range.least : range.most)};
}

std::string exact_bytes(uint64_t bytes) {
  constexpr std::string_view units[] = {"", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes > 0 && bytes % 1024 == 0 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{}{}", bytes, units[unit]);
}

uint64_t bytes_value(std::string_view text) {
  uint64_t whole = 0;  // exact where a double would round
  if (read_number(text, whole) == std::errc() && whole < uint64_t{1} << 63) return whole;
  return parse_bytes(text, "");
}

Conversion convert_bytes(std::string_view text) {
  try {
    return {exact_bytes(bytes_value(text)), ""};
  } catch (const Error&) {
    return {"",
            fmt::format("'{}' is not a size; give a number of bytes or for example 512MiB, 2GiB",
                        text)};
  }
}

Conversion convert_flag(std::string_view text) {
  if (text == "true" || text == "false") return {std::string(text), ""};
  return {"", fmt::format("'{}' is neither true nor false", text)};
}

Conversion convert_choice(std::string_view text, const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), text) != words.end()) return {std::string(text), ""};
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  const std::string near = nearest_name(text, words);
  return {"", near.empty() ? fmt::format("'{}' is none of {}", text, all)
                           : fmt::format("'{}' is none of {}; did you mean {}?", text, all, near)};
}

Conversion keep_text(std::string_view text) {
  return {std::string(text), ""};
}

Option text_option(std::string metavar) {
  Option option;
  option.metavar = std::move(metavar);
  option.quoted = true;
  option.convert = keep_text;
  return option;
}

template <class T>
void bind(Option& option, T* value) {
  option.current = [value] { return std::vector{std::string(*value)}; };
  option.store = [value](const std::vector<std::string>& texts) { *value = texts.at(0); };
}

template <class T>
void bind_list(Option& option, std::vector<T>* value) {
  option.is_list = true;
  option.current = [value] { return std::vector<std::string>(value->begin(), value->end()); };
  option.store = [value](const std::vector<std::string>& texts) {
    value->assign(texts.begin(), texts.end());
  };
}

std::string dashed(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

}  // namespace

Option OptionTable::integer_option(IntegerRange range) {
  Option option;
  option.metavar = "N";
  option.convert = [range](std::string_view text) { return convert_integer(text, range); };
  return option;
}

Option OptionTable::real_option(RealRange range) {
  Option option;
  option.metavar = "X";
  option.convert = [range](std::string_view text) { return convert_real(text, range); };
  return option;
}

Option OptionTable::choice_option(std::vector<std::string> words) {
  Option option = text_option("");
  for (const std::string& word : words)
    option.metavar += (option.metavar.empty() ? "" : "|") + word;
  option.convert = [words = std::move(words)](std::string_view text) {
    return convert_choice(text, words);
  };
  return option;
}

int64_t OptionTable::integer_value(const std::string& canonical) {
  int64_t value = 0;
  expect(read_number(canonical, value) == std::errc(), "a canonical integer");
  return value;
}

double OptionTable::real_value(const std::string& canonical) {
  double value = 0;
  expect(read_number(canonical, value) == std::errc(), "a canonical number");
  return value;
}

void OptionTable::flag(Names names, bool* value, std::string help) {
  Option option;
  option.is_flag = true;
  option.convert = convert_flag;
  option.current = [value] { return std::vector<std::string>{*value ? "true" : "false"}; };
  option.store = [value](const std::vector<std::string>& texts) { *value = texts.at(0) == "true"; };
  add(std::move(option), std::move(names), std::move(help));
}

void OptionTable::text(Names names, std::string* value, std::string help, std::string metavar) {
  Option option = text_option(std::move(metavar));
  bind(option, value);
  add(std::move(option), std::move(names), std::move(help));
}

void OptionTable::path(Names names, std::filesystem::path* value, std::string help) {
  Option option = text_option("PATH");
  bind(option, value);
  add(std::move(option), std::move(names), std::move(help));
}

void OptionTable::bytes(Names names, uint64_t* value, std::string help) {
  Option option = text_option("SIZE");
  option.convert = convert_bytes;
  option.current = [value] { return std::vector{exact_bytes(*value)}; };
  option.store = [value](const std::vector<std::string>& texts) {
    *value = bytes_value(texts.at(0));
  };
  add(std::move(option), std::move(names), std::move(help));
}

void OptionTable::texts(Names names, std::vector<std::string>* value, std::string help,
                        std::string metavar) {
  Option option = text_option(std::move(metavar));
  bind_list(option, value);
  add(std::move(option), std::move(names), std::move(help));
}

void OptionTable::paths(Names names, std::vector<std::filesystem::path>* value, std::string help) {
  Option option = text_option("PATH");
  bind_list(option, value);
  add(std::move(option), std::move(names), std::move(help));
}

void OptionTable::positional(std::string metavar, std::filesystem::path* value, std::string help) {
  Option option = text_option(metavar);
  bind(option, value);
  option.is_positional = true;
  option.stored = false;
  add(std::move(option), {std::move(metavar)}, std::move(help));
}

void OptionTable::positional(std::string metavar, std::string* value, std::string help) {
  Option option = text_option(metavar);
  bind(option, value);
  option.is_positional = true;
  option.stored = false;
  add(std::move(option), {std::move(metavar)}, std::move(help));
}

void OptionTable::do_not_store(std::string_view name) {
  Option* option = find(name);
  expect(option != nullptr, "the option is declared");
  option->stored = false;
}

void OptionTable::add(Option option, Names names, std::string help) {
  expect(!names.empty(), "an option has a name");
  for (const std::string& name : names)
    expect(find(name) == nullptr && name != "help" && name != "config",
           "an option name is declared once");
  option.names = std::move(names);
  option.help = std::move(help);
  option.group = group_;
  option.standard = option.current();
  options_.push_back(std::move(option));
}

const Option* OptionTable::find(std::string_view name) const {
  const std::string wanted = dashed(name);
  for (const Option& option : options_)
    if (std::find(option.names.begin(), option.names.end(), wanted) != option.names.end())
      return &option;
  return nullptr;
}

Option* OptionTable::find(std::string_view name) {
  return const_cast<Option*>(std::as_const(*this).find(name));
}

std::string OptionTable::nearest(std::string_view name) const {
  std::vector<std::string> names{"config", "help"};
  for (const Option& option : options_)
    if (!option.is_positional) names.insert(names.end(), option.names.begin(), option.names.end());
  return nearest_name(dashed(name), names);
}

OptionOrigin OptionTable::origin(std::string_view name) const {
  const Option* option = find(name);
  expect(option != nullptr, "the option is declared");
  return option->origin;
}

bool OptionTable::given(std::string_view name) const {
  const Option* option = find(name);
  expect(option != nullptr, "the option is declared");
  return option->origin == OptionOrigin::command_line ||
         (option->origin == OptionOrigin::file && option->current() != option->standard);
}

void refuse_without_effect(const OptionTable& table, const std::vector<std::string_view>& names,
                           std::string_view where) {
  std::string idle;
  size_t count = 0;
  for (const std::string_view name : names) {
    const Option* option = table.find(name);
    if (option == nullptr || !table.given(name)) continue;
    idle += fmt::format("{}--{}", count++ == 0 ? "" : ", ", option->names[0]);
  }
  require(count == 0, ErrorKind::usage, "{} {} no effect {}; leave {} out", idle,
          count == 1 ? "has" : "have", where, count == 1 ? "it" : "them");
}

}  // namespace rankine

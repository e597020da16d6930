#include "schedule/action.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"

namespace rankine {
namespace {

enum class Number : uint8_t { absent, present, either };

struct Symbol {
  std::string_view name;
  ActionKind kind;
  Number micro, block;

  bool allows(const Action& action) const {
    const auto fits = [](Number rule, int value) {
      return rule == Number::either || (rule == Number::present) == (value >= 0);
    };
    return fits(micro, action.micro) && fits(block, action.block);
  }
};
constexpr Symbol symbols[] = {
    {"F", ActionKind::forward, Number::present, Number::either},
    {"B", ActionKind::backward, Number::present, Number::either},
    {"I", ActionKind::backward_input, Number::present, Number::either},
    {"W", ActionKind::backward_weight, Number::present, Number::either},
    {"R", ActionKind::recompute, Number::present, Number::present},
    {"U", ActionKind::update, Number::absent, Number::absent},
    {"LOAD", ActionKind::load, Number::absent, Number::present},
    {"GATHER", ActionKind::gather, Number::absent, Number::present},
    {"RELEASE", ActionKind::release, Number::absent, Number::present},
    {"REDUCE", ActionKind::reduce, Number::present, Number::present},
    {"REFRESH", ActionKind::refresh, Number::absent, Number::present},
    {"SEND_F", ActionKind::send_activation, Number::present, Number::absent},
    {"RECV_F", ActionKind::receive_activation, Number::present, Number::absent},
    {"SEND_B", ActionKind::send_gradient, Number::present, Number::absent},
    {"RECV_B", ActionKind::receive_gradient, Number::present, Number::absent},
    {"STORE", ActionKind::store, Number::present, Number::present},
    {"FETCH", ActionKind::fetch, Number::present, Number::present}};

const Symbol& symbol_of(ActionKind kind) {
  for (const Symbol& symbol : symbols)
    if (symbol.kind == kind) return symbol;
  fail(ErrorKind::internal, "an action of unknown kind");
}

constexpr std::string_view digits = "0123456789";

// Takes the number at the head of `text`; false unless there is one below 10^9.
bool take_number(std::string_view& text, int& value) {
  const size_t length = std::min(text.find_first_not_of(digits), text.size());
  const auto status = std::from_chars(text.data(), text.data() + length, value).ec;
  text.remove_prefix(length);
  return length > 0 && status == std::errc() && value < 1'000'000'000;
}

bool take_action(std::string_view text, Action& action) {
  if (!take_number(text, action.stage)) return false;
  const std::string_view name = text.substr(0, text.find_first_of("0123456789."));
  const auto symbol = std::find_if(std::begin(symbols), std::end(symbols),
                                   [&](const Symbol& s) { return s.name == name; });
  if (symbol == std::end(symbols)) return false;
  action.kind = symbol->kind;
  text.remove_prefix(name.size());
  if (!text.empty() && text[0] != '.' && !take_number(text, action.micro)) return false;
  if (!text.empty()) {
    if (text[0] != '.') return false;
    text.remove_prefix(1);
    if (!take_number(text, action.block) || !text.empty()) return false;
  }
  return symbol->allows(action);
}

Action parse_action(std::string_view word) {
  Action action;
  if (take_action(word, action)) return action;
  fail(
      ErrorKind::usage,
      "'{}' is no action; write for example 0F2 (stage 0, forward, micro-batch 2), 0B2.5 (backward "
      "of block 5), 0REDUCE2.5, 0GATHER.5, 0SEND_F2 or 0U",
      word);
}

template <class Counts>
int peak_of(const Program& program, const Counts& counts) {
  std::map<std::pair<int, int>, size_t> last;  // (stage, micro) -> its last computation
  for (size_t i = 0; i < program.size(); ++i)
    if (computes(program[i].kind)) last[{program[i].stage, program[i].micro}] = i;
  std::set<std::pair<int, int>> live;
  size_t peak = 0;
  for (size_t i = 0; i < program.size(); ++i) {
    const Action& action = program[i];
    if (!computes(action.kind) || !counts(action)) continue;
    const std::pair key(action.stage, action.micro);
    live.insert(key);
    peak = std::max(peak, live.size());
    if (last[key] == i) live.erase(key);
  }
  return static_cast<int>(peak);
}

}  // namespace

bool computes(ActionKind kind) {
  return kind == ActionKind::forward || kind == ActionKind::backward ||
         kind == ActionKind::backward_input || kind == ActionKind::backward_weight ||
         kind == ActionKind::recompute;
}

bool well_formed(const Action& action) {
  return action.stage >= 0 && action.micro >= Action::none && action.block >= Action::none &&
         symbol_of(action.kind).allows(action);
}

Program accumulation_program(int micros) {
  Program program;
  for (int micro = 0; micro < micros; ++micro) {
    program.push_back({0, ActionKind::forward, micro});
    program.push_back({0, ActionKind::backward, micro});
  }
  program.push_back({0, ActionKind::update});
  return program;
}

int peak_in_flight(const Program& program, int stage) {
  return peak_of(program, [&](const Action& action) { return action.stage == stage; });
}

int peak_in_flight(const Program& program) {
  return peak_of(program, [](const Action&) { return true; });
}

std::string to_string(const Action& action) {
  std::string out = fmt::format("{}{}", action.stage, symbol_of(action.kind).name);
  if (action.micro != Action::none) out += std::to_string(action.micro);
  if (action.block != Action::none) out += "." + std::to_string(action.block);
  return out;
}

std::string to_string(const Program& program) {
  std::string out;
  for (const Action& action : program) out += (out.empty() ? "" : " ") + to_string(action);
  return out;
}

Program parse_program(std::string_view text) {
  Program program;
  while (true) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return program;
    text.remove_prefix(begin);
    const size_t end = std::min(text.find_first_of(" \t\r\n"), text.size());
    program.push_back(parse_action(text.substr(0, end)));
    text.remove_prefix(end);
  }
}

}  // namespace rankine

#include "schedule/action.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace rankine {
namespace {

struct Symbol {
  char letter;
  ActionKind kind;
};
constexpr Symbol symbols[] = {
    {'F', ActionKind::forward}, {'B', ActionKind::backward}, {'U', ActionKind::update}};

bool parse_number(std::string_view text, int& value) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() && end == text.data() + text.size() && value >= 0;
}

Action parse_action(std::string_view word) {
  for (const Symbol& symbol : symbols) {
    const size_t letter = word.find(symbol.letter);
    if (letter == std::string_view::npos) continue;
    Action action{0, symbol.kind, 0};
    const std::string_view micro = word.substr(letter + 1);
    const bool whole_step = symbol.kind == ActionKind::update;
    if (parse_number(word.substr(0, letter), action.stage) &&
        (whole_step ? micro.empty() : parse_number(micro, action.micro)))
      return action;
  }
  fail(ErrorKind::usage,
       "'{}' is no action; write for example 0F2 (stage 0, forward, micro-batch 2)", word);
}

}  // namespace

Program accumulation_program(int micros) {
  Program program;
  for (int micro = 0; micro < micros; ++micro) {
    program.push_back({0, ActionKind::forward, micro});
    program.push_back({0, ActionKind::backward, micro});
  }
  program.push_back({0, ActionKind::update, 0});
  return program;
}

void check(const Program& program, int micros) {
  enum class Progress { none, forwarded, done };
  std::vector<Progress> progress(static_cast<size_t>(micros), Progress::none);
  bool updated = false;
  for (size_t step = 0; step < program.size(); ++step) {
    const Action& action = program[step];
    const auto reject = [&](std::string_view why) {
      fail(ErrorKind::internal, "step program: action {} ({}) {}", step, to_string(action), why);
    };
    if (updated) reject("comes after the update");
    if (action.kind == ActionKind::update) {
      updated = true;
      continue;
    }
    if (action.micro < 0 || action.micro >= micros) reject("names a micro-batch out of range");
    Progress& state = progress[static_cast<size_t>(action.micro)];
    const bool forward = action.kind == ActionKind::forward;
    if (state != (forward ? Progress::none : Progress::forwarded))
      reject(forward ? "repeats a forward" : "has no forward before it, or repeats a backward");
    state = forward ? Progress::forwarded : Progress::done;
  }
  for (int micro = 0; micro < micros; ++micro)
    if (progress[static_cast<size_t>(micro)] != Progress::done)
      fail(ErrorKind::internal, "step program: micro-batch {} is never finished", micro);
  if (!updated) fail(ErrorKind::internal, "step program: the update is missing");
}

int peak_in_flight(const Program& program) {
  int live = 0, peak = 0;
  for (const Action& action : program) {
    if (action.kind == ActionKind::forward) peak = std::max(peak, ++live);
    if (action.kind == ActionKind::backward) --live;
  }
  return peak;
}

std::string to_string(const Action& action) {
  for (const Symbol& symbol : symbols)
    if (symbol.kind == action.kind)
      return symbol.kind == ActionKind::update
                 ? fmt::format("{}{}", action.stage, symbol.letter)
                 : fmt::format("{}{}{}", action.stage, symbol.letter, action.micro);
  fail(ErrorKind::internal, "an action of unknown kind");
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

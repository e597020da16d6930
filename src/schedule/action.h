#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// One training step as data: a step program is the list of actions of one rank. It can be printed,
// parsed and checked; the runtime executes exactly this list.
namespace rankine {

enum class ActionKind : uint8_t {
  forward,   // F: stage, micro-batch
  backward,  // B: input and weight gradients
  update     // U: clip and optimizer step, once, at the end
};

struct Action {
  int stage = 0;
  ActionKind kind = ActionKind::forward;
  int micro = 0;
  auto operator<=>(const Action&) const = default;
};

using Program = std::vector<Action>;

// Plain gradient accumulation on one stage: F0 B0 F1 B1 ... U.
Program accumulation_program(int micros);
// Throws Error{internal} naming step and action unless each micro-batch in [0, micros) is forwarded
// once, then backwarded once, and one update follows at the end.
void check(const Program& program, int micros);
// Micro-batches whose saved tensors live at the same time, at most.
int peak_in_flight(const Program& program);

std::string to_string(const Action& action);    // "0F3", "0U"
std::string to_string(const Program& program);  // separated by spaces
Program parse_program(std::string_view text);   // Error{usage} naming the word that is no action

}  // namespace rankine

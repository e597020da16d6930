#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// One training step as data: a step program is the list of actions of one rank. It can be printed,
// parsed, checked, simulated and drawn; the runtime executes exactly this list.
namespace rankine {

enum class ActionKind : uint8_t {
  forward,          // F: stage, micro-batch [, block]
  backward,         // B: input and weight gradients at once
  backward_input,   // I: the gradient of the input alone
  backward_weight,  // W: the weight gradients that an I left out
  recompute,        // R: of a block, what its forward did not keep for its backward
  update,           // U: waits for all reductions; clip and optimizer step
  load,             // LOAD: starts reading a block's parameters, or this rank's shard, from a tier
  gather,           // GATHER: starts collecting a block's sharded parameters from the data axis
  release,          // RELEASE: frees what a LOAD or GATHER filled
  reduce,           // REDUCE: starts summing a block's gradients over the data axis
  refresh,          // REFRESH: starts collecting a block's updated parameters, after U
  send_activation,  // SEND_F: starts sending a micro-batch's activations to the next stage
  receive_activation,  // RECV_F: starts receiving them from the previous stage
  send_gradient,       // SEND_B: starts sending their gradients to the previous stage
  receive_gradient,    // RECV_B: starts receiving them from the next stage
  store,               // STORE: starts writing what a block keeps of a micro-batch to a tier
  fetch                // FETCH: starts reading that again
};
bool computes(ActionKind kind);  // F, B, I, W or R

// Starting never blocks. What waits: F, B, I, W and R for the parameters they read (LOAD, GATHER,
// REFRESH of their blocks); F for its RECV_F, B and I for their RECV_B; R, B, I and W for the FETCH
// of what they read, that for its STORE; GATHER for its LOAD; B and W for the REDUCE that still
// reads the gradients they write; whatever takes memory over for the send or STORE that still reads
// it; U for every REDUCE and every send; RELEASE for nothing. waits() in schedule/waits.h says it
// for each action of a program.
struct Action {
  static constexpr int none = -1;
  int stage = 0;  // of the whole pipeline
  ActionKind kind = ActionKind::forward;
  int micro = none;  // none: U, LOAD, GATHER, RELEASE, REFRESH
  // Of the rank's blocks: those of all its stages, in order of stage, from 0; none: U, transfers,
  // or computations of all blocks of the stage.
  int block = none;
  auto operator<=>(const Action&) const = default;
};
// Whether an action has the numbers its kind needs, and no others.
bool well_formed(const Action& action);

using Program = std::vector<Action>;

// Plain gradient accumulation on one stage: F0 B0 F1 B1 ... U.
Program accumulation_program(int micros);
// Throws Error{internal} naming step and action unless, on each stage of the program, each
// micro-batch in [0, micros) is forwarded once, then backwarded once (one B, or one I and behind it
// one W; at most one R of a block in front of them), block by block in order where blocks are named
// (a later stage's behind an earlier stage's), and one update follows, after which only refreshes
// come. Transfers stand before what consumes and behind what makes their data, for all
// micro-batches of a stage or none; what is loaded or gathered is released; what is stored is
// fetched before its R, B or I; no gradient is reduced twice, or before its B or W.
void check(const Program& program, int micros);
// Micro-batches of a stage, and pairs of stage and micro-batch of the whole program, whose saved
// tensors live at the same time, at most: from the first F to the last B or W.
int peak_in_flight(const Program& program, int stage);
int peak_in_flight(const Program& program);

std::string to_string(const Action& action);    // "0F3", "0B3.12", "0GATHER.2", "0REDUCE3.2", "0U"
std::string to_string(const Program& program);  // separated by spaces
Program parse_program(std::string_view text);   // Error{usage} naming the word that is no action

}  // namespace rankine

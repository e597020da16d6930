#pragma once
#include <cstdint>
#include <vector>

#include "schedule/passes.h"

// Static memory for buffers that come and go during a step: every use has its place before the
// step runs, so that the pool's size is known exactly.
namespace rankine {

enum class StayKind : uint8_t {
  parameters,       // of a block, gathered
  gradient,         // of a block's parameters
  input,            // what a block reads, as its backward needs it again
  saved,            // what else its forward keeps for its backward
  output,           // of a stage's last block, until it is sent
  pending,          // what a block's I keeps for its W
  input_gradient,   // of a block's input: made by its B or I
  output_gradient,  // of a stage's last block's output, as received
  passed_over,      // what a block's forward makes and does not keep, during F
  recomputed,       // the same from R to its last backward action
  input_again,      // `input` and `saved`, as FETCH brings them back
  saved_again,
  stored  // both in their tier, one behind the other
};

// One stay of a buffer: it is taken at action `first` and given back after action `last` (indices
// into the program, inclusive).
struct Stay {
  int block = 0, first = 0, last = 0;
  int64_t bytes = 0, offset = 0;  // offset: into the pool, set by place()
  int micro = Action::none;       // none: parameters and gradients
  StayKind kind = StayKind::parameters;
};

// Placed stays of the pools in which communication reads memory: REDUCE reads gradients, SEND_F
// outputs, SEND_B input gradients, STORE what is saved. Empty: each buffer has memory of its own.
struct PlacedStays {
  std::vector<Stay> gradients = {}, passing = {}, saved = {};
};

// Gathered parameters: from each LOAD, or GATHER where nothing is loaded, to its RELEASE.
std::vector<Stay> gather_stays(const Program& program, const std::vector<int64_t>& block_bytes);
// Gradients that are reduced per micro-batch: from the first action after the block's last REDUCE
// that writes its gradient (its own B or W, B of a block tied to it) to the `linger`-th computation
// after its REDUCE (so that the reduction has time), at most U and at most the action before the
// next one that writes it. The action `first` finds foreign bytes and overwrites them, later ones
// add; it waits for the REDUCE of what was there before, as waits() says.
std::vector<Stay> gradient_stays(const Program& program, const std::vector<BlockTraits>& blocks,
                                 const std::vector<int64_t>& block_bytes, int linger);

// Bytes of one micro-batch in one block; no stay has 0 bytes.
struct ActivationBytes {
  int64_t input = 0;       // of what it reads, and of the gradient of it
  int64_t saved = 0;       // for its backward, beside the input
  int64_t recomputed = 0;  // made by F, and again by R where there is one
  int64_t output = 0;   // of what a stage's last block hands on, and of the gradient it gets back
  int64_t pending = 0;  // between its I and its W, or within its B
};

struct ActivationStays {
  std::vector<Stay> saved, passing;  // two pools, to be placed apart
  std::vector<Stay> stored;          // a third one, in a tier
};

// Of an expanded program with its transfers. In `saved`, in which no rank but this one reads: an
// input from where it is made (F of the block before on this rank, be it of the stage before, or
// RECV_F; the first stage's first block has none) to the block's last backward action, its B or W;
// saved from F to there; where there is a STORE, both until the computation behind it, and again
// from FETCH; where there is an R, what is recomputed during F and again from R to there; an output
// gradient from RECV_B to there. In `stored`: both from STORE to the R, B or I that waits for their
// FETCH. In `passing`: an output that is sent, from its F until just before the next but one F that
// makes one of the same stage (double buffering); pending from B or I to B or W; an input gradient
// from B or I to the last backward action of the block before on this rank, or, where SEND_B takes
// it, as long as an output (the first stage's first block has none). Nothing is kept beyond U. So
// no receive ever waits for a send: ranks that hold each other's receives up would never end.
ActivationStays activation_stays(const Program& program, const std::vector<StageBlocks>& stages,
                                 const std::vector<ActivationBytes>& blocks);

// Gives each stay an offset, a multiple of 64, such that stays that overlap in time never overlap
// in memory: first fit, in order of start or from the largest to the smallest, whichever takes
// less. Returns the pool's bytes, a multiple of 64 too.
int64_t place(std::vector<Stay>& stays);

}  // namespace rankine

#pragma once
#include <cstdint>
#include <vector>

#include "schedule/passes.h"

// Static memory for buffers that come and go during a step: every use has its place before the
// step runs, so that the pool's size is known exactly.
namespace rankine {

// One stay of a buffer: it is taken at action `first` and given back after action `last` (indices
// into the program, inclusive).
struct Stay {
  int block = 0, first = 0, last = 0;
  int64_t bytes = 0, offset = 0;  // offset: into the pool, set by place()
};

// Gathered parameters: from each GATHER to its RELEASE.
std::vector<Stay> gather_stays(const Program& program, const std::vector<int64_t>& block_bytes);
// Gradients that are reduced per micro-batch: from the first action after the block's last REDUCE
// that writes its gradient (its own B, F of a block tied to it, its own F where that adds
// gradients) to the `linger`-th computation after its REDUCE (so that the reduction has time), at
// most U and at most the action before the next one that writes it. The action `first` finds
// foreign bytes and overwrites them, later ones add; it waits for the REDUCE of what was there
// before, as waits() says.
std::vector<Stay> gradient_stays(const Program& program, const std::vector<BlockTraits>& blocks,
                                 const std::vector<int64_t>& block_bytes, int linger);
// Gives each stay an offset, a multiple of 64, such that stays that overlap in time never overlap
// in memory: first fit, in order of start. Returns the pool's bytes, a multiple of 64 too.
int64_t place(std::vector<Stay>& stays);

}  // namespace rankine

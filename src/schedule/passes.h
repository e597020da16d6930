#pragma once
#include <cstdint>
#include <vector>

#include "schedule/action.h"

// Passes add to a rank's program of computations what parallelism needs around them. Each is a pure
// function of the program; what it inserts depends on its arguments alone, so that all ranks of a
// data group get the same order of collectives. What is inserted for a block names the stage of
// that block.
namespace rankine {

// What passes must know of one of the rank's blocks.
struct BlockTraits {
  int64_t parameter_elements = 0;  // owned by this block
  // Another block of the rank, or none: its parameters are read too by this block's backward, and
  // by its forward where that reads parameters; this block's backward adds to its gradients.
  int tied = Action::none;
  bool forward_reads_parameters = true;
  bool backward_reads_parameters = true;  // its own, by B, I and W
  bool splits_backward = true;            // has I and W; otherwise B stands for both
  bool recomputes = false;                // has an R in front of its B or I
  bool keeps = true;                      // something of a micro-batch from its F to its backward
};

// The blocks of its rank whose parameters an F, B, I or W reads; whose gradients a B or W adds to.
// Without traits, what the action alone says; blocks without parameters are never among them.
std::vector<int> parameters_read(const Action& action, const std::vector<BlockTraits>& blocks);
std::vector<int> gradients_written(const Action& action, const std::vector<BlockTraits>& blocks);

// Blocks [first, first + count) of the rank are this stage's.
struct StageBlocks {
  int stage = 0, first = 0, count = 0;
  bool operator==(const StageBlocks&) const = default;
};
// As the block numbers of a program's computations say it, in order of stage.
std::vector<StageBlocks> stage_blocks(const Program& expanded);

// Computations of whole stages become one action per block: F ascending, B, I and W descending.
// Where a block does not split its backward, its I becomes a B and its W is left out.
Program expand_blocks(const Program& program, const std::vector<StageBlocks>& stages,
                      const std::vector<BlockTraits>& blocks);

// R of each block that recomputes, in front of its B or I; behind add_transfers, which knows no R.
Program add_recomputes(const Program& expanded, const std::vector<BlockTraits>& blocks);

// REDUCE of each block once its gradients of a micro-batch are complete: after the B or W of the
// last micro-batch in program order, or of every one with `every_micro`. Blocks are gathered into
// buckets in the order in which they become complete until a bucket holds `bucket_elements`; the
// REDUCEs of a bucket follow the completion of its last block. Blocks without parameters get none.
// With `every_micro` no bucket holds two micro-batches, nor a block beyond the next action that
// writes its gradient.
struct ReducePlan {
  bool every_micro = false;
  int64_t bucket_elements = 0;  // 0: every block at once
};
Program add_reduces(const Program& expanded, const std::vector<BlockTraits>& blocks,
                    const ReducePlan& plan);

// How a block's parameters come to the computations that read them.
struct GatherPlan {
  int keep = 2;         // parameters stay when one of so many next computations (at least 1)
                        // reads them too
  bool gathers = true;  // GATHER joins the data axis's shards
  int load_ahead = 0;   // LOAD reads a tier, so many computations early; 0: nothing is in a tier
};
// LOAD, GATHER before and RELEASE after the uses of each block's parameters. A GATHER stands one
// computation (of a block) early (prefetch), in front of the computation before the one that needs
// it; a LOAD so much earlier than that, or than the use where nothing is gathered, but behind the
// RELEASE of the block. Nothing stays gathered at the end.
Program add_gathers(const Program& program, const std::vector<BlockTraits>& blocks,
                    const GatherPlan& plan = {});
// STORE of what a block keeps of a micro-batch behind its F and FETCH of it `ahead` computations
// (at least 1) in front of its R, B or I, where it keeps something and its memory is free meanwhile
// for a computation besides that during which it is written. Behind add_recomputes.
Program add_stores(const Program& expanded, const std::vector<BlockTraits>& blocks, int ahead);

// REFRESH of every block with parameters after U, in the order of the blocks.
Program add_refreshes(const Program& program, const std::vector<BlockTraits>& blocks);

// check(program, micros), and Error{internal} unless the program computes these blocks and, if it
// has any LOAD or GATHER, every computation finds what it reads gathered; if it has any REDUCE,
// each block with parameters is reduced once for every micro-batch or once behind its last B or W,
// all in the same manner; if it has any REFRESH, each block with parameters is refreshed once; no W
// or I is of a block that does not split its backward; R is there for just the blocks that
// recompute.
void check(const Program& program, int micros, const std::vector<BlockTraits>& blocks);

}  // namespace rankine

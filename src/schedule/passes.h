#pragma once
#include <vector>

#include "schedule/action.h"

// Passes add to a program of computations what parallelism needs around them. Each is a pure
// function of a program of one stage; what it inserts depends on its arguments alone, so that all
// ranks of a data group get the same order of collectives.
namespace rankine {

// What passes must know of one block of the stage.
struct BlockTraits {
  int64_t parameter_elements = 0;  // owned by this block
  int tied = Action::none;         // another block of the stage whose parameters its forward reads
                                   // and whose gradients it adds to, or none
  bool backward_reads_parameters = true;
  bool forward_adds_gradients = false;  // to its own, as an untied head does
};

// The blocks of its stage whose parameters F or B reads; whose gradients it adds to. Without
// traits, what the action alone says; blocks without parameters are never among them.
std::vector<int> parameters_read(const Action& action, const std::vector<BlockTraits>& blocks);
std::vector<int> gradients_written(const Action& action, const std::vector<BlockTraits>& blocks);

// F and B of whole stages become one action per block: F ascending, B descending.
Program expand_blocks(const Program& program, int blocks);

// REDUCE of each block once its gradients of a micro-batch are complete: after the B of the last
// micro-batch in program order, or of every one with `every_micro`. Blocks are gathered into
// buckets in the order in which they become complete until a bucket holds `bucket_elements`; the
// REDUCEs of a bucket follow the completion of its last block. Blocks without parameters get none.
// With `every_micro` no bucket holds two micro-batches.
struct ReducePlan {
  bool every_micro = false;
  int64_t bucket_elements = 0;  // 0: every block at once
};
Program add_reduces(const Program& expanded, const std::vector<BlockTraits>& blocks,
                    const ReducePlan& plan);

// GATHER before and RELEASE after the uses of each block's parameters. A GATHER stands one
// computation early (prefetch), in front of the computation before the one that needs it.
// Parameters stay when one of the next two computations reads them too: for the second the GATHER
// would stand right behind the RELEASE. Nothing stays gathered at the end.
Program add_gathers(const Program& program, const std::vector<BlockTraits>& blocks);

// REFRESH of every block with parameters after U, in the order of the blocks.
Program add_refreshes(const Program& program, const std::vector<BlockTraits>& blocks);

// check(program, micros), and Error{internal} unless the program computes these blocks and, if it
// has any GATHER, every F and B finds what it reads gathered; if it has any REDUCE, each block with
// parameters is reduced once for every micro-batch or once behind its last B, all in the same
// manner; if it has any REFRESH, each block with parameters is refreshed once.
void check(const Program& program, int micros, const std::vector<BlockTraits>& blocks);

}  // namespace rankine

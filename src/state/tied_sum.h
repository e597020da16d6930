#pragma once
#include <vector>

#include "comm/communicator.h"
#include "ops/ops.h"

namespace rankine {

// A token matrix that the embedding and a tied head hold one copy of each, on ranks of their own or
// with gradients to be summed apart. Both end up with the same sum, so that both stay equal; the
// embedding's copy is the one that counts.
struct TiedCopy {
  static constexpr int none = -1;
  static constexpr int64_t chunk_elements = 256 << 10;

  // One side, over all ranks of the data axis.
  struct Side {
    int64_t shard = 0;       // elements of its block that each owner has; the matrix comes first
    std::vector<int> ranks;  // by data coordinate, of `world`
  };
  int64_t elements = 0;  // of the matrix
  int owners = 1;        // of shards; 1: every rank of the data axis has all of it
  Side embedding, head;
  int embedding_block = none, head_block = none;  // those this rank holds
  int data_rank = 0;
  Communicator* world = nullptr;  // that carries tensors

  // A shard of a block's gradient, f32; `first` is its begin within the block.
  struct Use {
    Tensor gradient;
    int64_t first = 0;
  };
  // Adds to each use what the other has; all ranks that hold one call it together.
  void add(const Use& embedding_use, const Use& head_use, Ops& ops, const Tensor& scratch) const;
};

}  // namespace rankine

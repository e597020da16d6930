#pragma once
#include <cstdint>

#include "model/config.h"

// Which part of a model one rank of the tensor axis computes: pure arithmetic (Megatron-LM's split,
// Shoeybi et al. 2019, arXiv 1909.08053; sequence parallelism, Korthikanti et al. 2022, arXiv
// 2205.05198).
namespace rankine {

struct TensorSplit {
  int rank = 0, ranks = 1;
  bool sequence = false;  // rows outside the regions are split too

  struct Range {
    int64_t begin = 0, end = 0;
    int64_t count() const { return end - begin; }
  };
  // This rank's share of `count` things; `ranks` divides it.
  Range share(int64_t count) const { return {count * rank / ranks, count * (rank + 1) / ranks}; }
  bool splits_rows() const { return sequence && ranks > 1; }
  // Rows that this rank has outside the regions, of `all`.
  int64_t rows(int64_t all) const { return splits_rows() ? all / ranks : all; }

  Range heads(const ModelConfig& config) const { return share(config.heads); }
  // With fewer key/value heads than ranks, neighbours hold the same one.
  Range kv_heads(const ModelConfig& config) const;
  int kv_replicas(const ModelConfig& config) const;  // ranks that hold the same key/value heads
  // Vocabulary rows in memory, padding among them, of which this rank's begin at vocabulary().begin
  // and those below the vocabulary's end are real.
  int64_t stored_vocabulary(const ModelConfig& config) const;
  Range vocabulary(const ModelConfig& config) const;
};

// Throws Error{usage} naming the legal degrees unless heads and feed-forward size divide over the
// ranks and, with sequence parallelism, the rows of a micro-batch do.
void check(const ModelConfig& config, const TensorSplit& split, int64_t rows);

}  // namespace rankine

#include "model/tensor_split.h"

#include <algorithm>

#include "base/error.h"
#include "model/block.h"

namespace rankine {
namespace {

bool can_split(const ModelConfig& c, int64_t ranks) {
  return c.heads % ranks == 0 && c.feed_forward % ranks == 0 &&
         (c.kv_heads % ranks == 0 || ranks % c.kv_heads == 0);
}

std::string legal_degrees(const ModelConfig& c) {
  std::string out;
  for (int64_t ranks = 1; ranks <= c.heads; ++ranks)
    if (can_split(c, ranks)) out += (out.empty() ? "" : ", ") + std::to_string(ranks);
  return out;
}

}  // namespace

TensorSplit::Range TensorSplit::kv_heads(const ModelConfig& config) const {
  if (config.kv_heads % ranks == 0) return share(config.kv_heads);
  const int64_t head = rank / kv_replicas(config);
  return {head, head + 1};
}

int TensorSplit::kv_replicas(const ModelConfig& config) const {
  return config.kv_heads >= ranks ? 1 : ranks / static_cast<int>(config.kv_heads);
}

int64_t TensorSplit::stored_vocabulary(const ModelConfig& config) const {
  const int64_t unit = 64 * ranks;
  return (config.vocabulary + unit - 1) / unit * 64;
}

TensorSplit::Range TensorSplit::vocabulary(const ModelConfig& config) const {
  const int64_t stored = stored_vocabulary(config);
  return {std::min(config.vocabulary, rank * stored),
          std::min(config.vocabulary, (rank + 1) * stored)};
}

void check(const ModelConfig& config, const TensorSplit& split, int64_t rows) {
  require(can_split(config, split.ranks), ErrorKind::usage,
          "--tensor-parallel {}: {} heads, {} key/value heads and a feed-forward size of {} cannot "
          "be split over {} ranks; legal degrees for this model are {}",
          split.ranks, config.heads, config.kv_heads, config.feed_forward, split.ranks,
          legal_degrees(config));
  if (!split.splits_rows()) return;
  require(rows % split.ranks == 0, ErrorKind::usage,
          "--sequence-parallel splits the {} tokens of a micro-batch over {} tensor ranks, which "
          "must divide them; choose another --seq-length or --micro-batch-size",
          rows, split.ranks);
  require(config.dropout == 0 || rows / split.ranks * config.hidden % 4 == 0, ErrorKind::usage,
          "--sequence-parallel with --dropout needs a multiple of 4 activations on each rank, not "
          "{} tokens of {}",
          rows / split.ranks, config.hidden);
}

}  // namespace rankine

#pragma once
#include "model/block.h"

// The blocks of a model, and the part of them that one rank computes.
namespace rankine {

class LmHead;

// The blocks that one rank computes, and its part of them.
struct ModelPart {
  TensorSplit split = {};
  // Of all blocks (embedding, layers, head), one range per stage this rank holds, ascending.
  struct Stage {
    int64_t first = 0, count = 0;
  };
  std::vector<Stage> stages = {};  // empty: all blocks, one stage
  // A tied head has a token matrix of its own, since the embedding is on another rank or its
  // gradients are to be summed apart.
  bool tied_copy = false;
  Recompute recompute = Recompute::none;
  int64_t recompute_layers = -1;  // of each stage, the first so many; -1: all
};

std::unique_ptr<Block> make_embedding(const ModelConfig& config, const ModelPart& part);
std::unique_ptr<Block> make_layer(const ModelConfig& config, int64_t layer, const ModelPart& part,
                                  Recompute recompute);

// The blocks of a model that one rank computes, in order.
struct Model {
  explicit Model(const ModelConfig& config, const ModelPart& part = {});
  std::vector<BlockDescription> describe(const Ops& ops, MicroShape shape, DType dtype) const;
  const LmHead& head() const;  // of a model that has it
  static int64_t block_count(const ModelConfig& config) { return config.layers + 2; }

  ModelConfig config;
  ModelPart part;
  std::vector<std::unique_ptr<Block>> blocks;

 private:
  const LmHead* head_ = nullptr;
};

// Floating-point operations of training on one token: 6 N + 6 L T (H D), causal; N counts the
// parameters without those that are only looked up (untied token embedding, learned positions).
double training_flops_per_token(const ModelConfig& config, int64_t tokens);

}  // namespace rankine

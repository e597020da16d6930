#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/param_spec.h"

// A piece of the network with an explicit forward and backward. A block has no hidden state: its
// parameters, saved tensors and scratch come in with every call.
//
// Shape letters: B sequences, T tokens of a sequence, R = B*T rows, C hidden size, H heads,
// K key/value heads, D head size, W = (H+2K)*D, F feed-forward size, V vocabulary, P positions.
namespace rankine {

struct MicroShape {
  int64_t batch = 1, tokens = 1;
  int64_t rows() const { return batch * tokens; }
};

struct TensorSpec {
  std::string name;
  DType dtype;
  Shape shape;
};

// Everything a plan needs to know of a block for one micro-batch shape and compute dtype.
struct BlockDescription {
  std::string name;                       // "layers.3"
  std::vector<ParamSpec> parameters;      // owned by this block
  std::string tied;                       // name of another block's parameter used here too, or ""
  bool backward_reads_parameters = true;  // its own, in backward_input or backward_weight
  bool forward_adds_gradients = false;    // to its own parameters, while training
  std::vector<TensorSpec> saved;          // from forward to backward_weight; [0] holds the input
  std::vector<TensorSpec> pending;        // from backward_input to backward_weight
  std::vector<TensorSpec> forward_scratch, backward_scratch;
  size_t workspace = 0;        // bytes the operations need, Ops::set_workspace
  double matmul_flops = 0;     // of the forward's matrix products; backward does twice as many
  double attention_flops = 0;  // of the forward's causal attention (half of T x T)
};

// Keys and values of one layer for one sequence, [K, P, D] each; `past` tokens are in them.
struct KvCache {
  Tensor keys, values;
  int64_t past = 0;
};

// One call's surroundings. Tensors may be larger than the call's shape; a prefix is used.
struct BlockRun {
  Ops& ops;
  MicroShape shape;
  std::span<const Tensor>
      params;                     // one per group of joined parameters, in order; then the tied one
  std::span<const Tensor> grads;  // f32, likewise; empty when nothing is trained
  std::span<const Tensor> saved, pending, scratch;
  Tensor ids, targets;                    // i32 [R]; targets < 0 are ignored
  Tensor rope_table;                      // f32 [P, D]
  Tensor loss;                            // f64 [1], the head adds the sum of its token losses
  float gradient_scale = 0;               // 1 / global number of valid tokens, times the loss scale
  bool training = false;                  // the head makes gradients
  bool accumulate = false;                // gradients hold earlier micro-batches of this step
  uint64_t seed = 0, dropout_stream = 0;  // stream: (step, global micro-batch)
  const KvCache* cache = nullptr;         // decode: attend over cached tokens
};

class Block {
 public:
  virtual ~Block() = default;
  virtual BlockDescription describe(const Ops& ops, MicroShape shape, DType dtype) const = 0;
  // Reads saved[0] (the embedding: ids), writes `y` [R,C] (the head: loss), fills saved[1...].
  virtual void forward(const BlockRun& run, Tensor y) const = 0;
  // dx [R,C] from dy [R,C]; also adds the gradients of norm weights, which need no product.
  virtual void backward_input(const BlockRun& run, const Tensor& dy, Tensor dx) const = 0;
  // The remaining weight gradients; dy must still hold what backward_input saw.
  virtual void backward_weight(const BlockRun& run, const Tensor& dy) const = 0;
};

// `tensor` seen with R = run.shape.rows() rows of `width`.
Tensor rows_of(const BlockRun& run, const Tensor& tensor, int64_t width);
// Zeroes a share of x and scales the rest, while training; the same call on a gradient is the
// backward. Sites number the places of a model, so that no two share a mask.
void apply_dropout(const BlockRun& run, const ModelConfig& config, int64_t site, Tensor x);

// Extents of a group of joined parameters as one matrix or vector: the rows add up.
std::vector<ParamSpec> joined_groups(std::span<const ParamSpec> parameters);

std::unique_ptr<Block> make_embedding(const ModelConfig& config);
std::unique_ptr<Block> make_layer(const ModelConfig& config, int64_t layer);

// The final norm, the vocabulary product and the cross-entropy. forward() with `training` also
// makes the gradients of its matrix and of its normed input, chunk by chunk, so that whole logits
// never exist; its backward_weight has nothing left to do.
class Head : public Block {
 public:
  explicit Head(const ModelConfig& config);
  BlockDescription describe(const Ops& ops, MicroShape shape, DType dtype) const override;
  void forward(const BlockRun& run, Tensor y) const override;
  void backward_input(const BlockRun& run, const Tensor& dy, Tensor dx) const override;
  void backward_weight(const BlockRun&, const Tensor&) const override {}
  // logits [n, Vp] of rows [first, first + n) of saved[0]; n at most logit_rows().
  Tensor logits(const BlockRun& run, int64_t first, int64_t count) const;
  static int64_t logit_rows(int64_t rows);  // rows of logits held at a time

 private:
  void norm_inputs(const BlockRun& run) const;
  ModelConfig config_;
};

int64_t padded_vocabulary(int64_t vocabulary);  // rows of the token matrix in memory

// All blocks of a model, in order.
struct Model {
  explicit Model(const ModelConfig& config);
  std::vector<BlockDescription> describe(const Ops& ops, MicroShape shape, DType dtype) const;
  const Head& head() const { return *head_; }

  ModelConfig config;
  std::vector<std::unique_ptr<Block>> blocks;

 private:
  const Head* head_ = nullptr;
};

// Floating-point operations of training on one token: 6 N + 6 L T (H D), causal; N counts the
// parameters without those that are only looked up (untied token embedding, learned positions).
double training_flops_per_token(const ModelConfig& config, int64_t tokens);

}  // namespace rankine

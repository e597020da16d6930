#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/param_spec.h"
#include "model/tensor_region.h"

// A piece of the network with an explicit forward and backward. A block has no hidden state: its
// parameters, saved tensors and scratch come in with every call.
//
// Shape letters: B sequences, T tokens of a sequence, R = B*T rows, C hidden size, H heads,
// K key/value heads, D head size, W = (H+2K)*D, F feed-forward size, V vocabulary, P positions.
// Of H, K, F and V a rank of the tensor axis has its part; "own rows" are those it has outside the
// regions of tensor-parallel work (tensor_region.h), all R without sequence parallelism.
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
  bool forward_reads_parameters = true;   // while training
  bool backward_reads_parameters = true;  // its own, in backward_input or backward_weight
  bool splits_backward = true;            // otherwise backward_input leaves nothing to do
  std::vector<TensorSpec> saved;          // from forward to backward_weight; [0] holds the input
  std::vector<TensorSpec> recomputed;     // behind those: made by forward, and again by recompute
  TensorSpec output;                      // what forward hands on; dtype and shape of its gradient
  std::vector<TensorSpec> pending;        // from backward_input to backward_weight
  std::vector<TensorSpec> forward_scratch, backward_scratch;
  size_t workspace = 0;        // bytes the operations need, Ops::set_workspace
  double matmul_flops = 0;     // of the forward's matrix products; backward does twice as many
  double attention_flops = 0;  // of the forward's causal attention (half of T x T)
  double recompute_flops = 0;  // of both, in recompute
};

// One call's surroundings. Tensors may be larger than the call's shape; a prefix is used.
struct BlockRun {
  Ops& ops;
  MicroShape shape;
  std::span<const Tensor>
      params;                     // one per group of joined parameters, in order; then the tied one
  std::span<const Tensor> grads;  // f32, likewise; empty when nothing is trained
  std::span<const Tensor> saved, pending, scratch;  // saved: with what is recomputed
  TensorRegion region = {};
  Tensor ids, targets;                    // i32 [R]; targets < 0 are ignored
  Tensor first_keys;                      // i32 [R], AttentionShape's; empty: no document mask
  Tensor rope_table;                      // f32 [P, D]
  Tensor loss;                            // f64 [1], the head adds the sum of its token losses
  float gradient_scale = 0;               // 1 / global number of valid tokens
  Tensor step_state = {};                 // not empty: its loss scale multiplies the loss
  bool training = false;                  // a backward follows
  bool accumulate = false;                // gradients hold earlier micro-batches of this step
  uint64_t seed = 0, dropout_stream = 0;  // stream: (step, global micro-batch)
  std::span<const KvCache> caches = {};   // inference: of each of the shape's sequences, or none
  // One token of each sequence: products of few rows.
  bool decodes() const { return !caches.empty() && shape.tokens == 1; }
};

class Block {
 public:
  virtual ~Block() = default;
  virtual BlockDescription describe(const Ops& ops, MicroShape shape, DType dtype) const = 0;
  // Reads saved[0] (the embedding: ids), writes `y` [own rows, C] (the head: loss), fills
  // saved[1...].
  virtual void forward(const BlockRun& run, Tensor y) const = 0;
  // Makes the `recomputed` tensors again, the same bits, with forward's scratch.
  virtual void recompute(const BlockRun&) const {}
  // dx [own rows, C] from dy [own rows, C].
  virtual void backward_input(const BlockRun& run, const Tensor& dy, Tensor dx) const = 0;
  // All weight gradients; dy must still hold what backward_input saw.
  virtual void backward_weight(const BlockRun& run, const Tensor& dy) const = 0;
  // Both, the same bits; communication of the one may hide behind the other.
  virtual void backward(const BlockRun& run, const Tensor& dy, Tensor dx) const {
    backward_input(run, dy, dx);
    backward_weight(run, dy);
  }
};

// What a layer's forward does not keep for its backward: nothing; attention's output, which is
// made again from q, k and v; everything but the layer's input.
enum class Recompute : uint8_t { none, selective, full };

// `tensor` seen with R = run.shape.rows() rows of `width`; with the rows a rank has outside
// regions.
Tensor rows_of(const BlockRun& run, const Tensor& tensor, int64_t width);
Tensor own_rows_of(const BlockRun& run, const Tensor& tensor, int64_t width);
// One of BlockRun's params or grads by its group's number; empty for -1, what is absent.
inline Tensor group_of(std::span<const Tensor> tensors, int group) {
  return group < 0 ? Tensor{} : tensors[static_cast<size_t>(group)];
}
// f32 values that a norm's forward leaves of each row for its backward: mean and 1 / deviation, or
// only the latter.
inline int64_t stats_width(NormKind kind) {
  return kind == NormKind::layer ? 2 : 1;
}
// Zeroes a share of x and scales the rest, while training; the same call on a gradient is the
// backward. Sites number the places of a model, so that no two share a mask. x has own rows.
void apply_dropout(const BlockRun& run, const ModelConfig& config, int64_t site, Tensor x);

// y = x w^T (+ bias), as suits the number of rows.
void apply_linear(const BlockRun& run, const Tensor& x, const Tensor& w, const Tensor& bias,
                  Tensor y);

}  // namespace rankine

#pragma once
#include "model/residual_branch.h"

namespace rankine {

// The attention of a layer: branch(x) = out(attention(rope(head_norm(qkv(norm(x)))))), or the
// tensor axis's part of it, some heads. forward() is in attention.cpp, backward in
// attention_backward.cpp.
class Attention {
 public:
  Attention(const ModelConfig& config, int64_t layer, const TensorSplit& split,
            const AttentionGroups& groups);

  PartTensors tensors(MicroShape shape, DType dtype) const;
  void place(PartIndices at) { at_ = std::move(at); }
  ResidualBranch& branch() { return branch_; }
  const ResidualBranch& branch() const { return branch_; }
  size_t workspace(const Ops& ops, MicroShape shape, DType dtype) const;
  // Of the forward: products, and causal attention (half of T x T).
  double matmul_flops(MicroShape shape) const;
  double attention_flops(MicroShape shape) const;

  // Up to the attention's output, from own rows of x [own rows, C].
  void attend(const BlockRun& run, const Tensor& own_x) const;
  // From there to the own rows of the branch's output.
  Tensor own_output(const BlockRun& run) const;
  // The attention's output and its log-sum-exp again, from the saved qkv.
  void attend_again(const BlockRun& run) const;

  // From the gradient dy [own rows, C] of the branch's output to that of the normed rows, on its
  // way over the ranks.
  Work backward_input(const BlockRun& run, const Tensor& dy) const;
  // Weight gradients of the products; those of the norms come by norm_weights().
  void backward_weight(const BlockRun& run, const Tensor& dy, const Tensor& own_x) const;
  void norm_weights(const BlockRun& run) const;

 private:
  enum Saved : size_t { qkv, head_rstd, attended, lse };
  enum Pending : size_t { dqkv, head_norm_gradients };
  enum ForwardScratch : size_t { ready };
  enum BackwardScratch : size_t { dattended, ready_again };

  int64_t heads() const { return split_.heads(config_).count(); }
  int64_t kv_heads() const { return split_.kv_heads(config_).count(); }
  int64_t query_width() const { return heads() * config_.head_dim; }
  int64_t qkv_width() const { return (heads() + 2 * kv_heads()) * config_.head_dim; }
  AttentionShape shape_of(MicroShape shape) const;
  AttentionShape masked_shape(const BlockRun& run) const;
  Tensor saved(const BlockRun& run, Saved which, int64_t width) const {
    return rows_of(run, run.saved[at_.saved[which]], width);
  }
  Tensor lse_of(const BlockRun& run) const;
  Tensor input(const BlockRun& run, const Tensor& buffer) const;
  Tensor forward_buffer(const BlockRun& run) const;
  void attend_to(const BlockRun& run, const Tensor& ready_qkv) const;
  void heads_grad(const BlockRun& run, const Tensor& dout, const Tensor& dqkv_rows) const;

  ModelConfig config_;
  TensorSplit split_;
  int64_t layer_;
  AttentionGroups groups_;
  ResidualBranch branch_;
  PartIndices at_;
};

}  // namespace rankine

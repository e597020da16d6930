#pragma once
#include "model/residual_branch.h"

namespace rankine {

// The feed-forward part of a layer: branch(x) = down(act(up(norm(x)))), or the tensor axis's part
// of it, a share of the feed-forward size. Its x is the sum of the layer's input and the
// attention's output, which its norm makes on the way.
class FeedForward {
 public:
  FeedForward(const ModelConfig& config, int64_t layer, const TensorSplit& split,
              const FeedForwardGroups& groups);

  PartTensors tensors(MicroShape shape, DType dtype) const;
  void place(PartIndices at) { at_ = std::move(at); }
  ResidualBranch& branch() { return branch_; }
  const ResidualBranch& branch() const { return branch_; }
  size_t workspace(const Ops& ops, MicroShape shape, DType dtype) const;
  double up_flops(MicroShape shape) const;  // of the forward's first product
  double matmul_flops(MicroShape shape) const;

  // x [own rows, C], the sum that up() has made.
  Tensor own_x(const BlockRun& run) const {
    return own_rows_of(run, run.saved[at_.saved[middle]], config_.hidden);
  }
  // Up to the activation's input, from x = own_input + own_add.
  void up(const BlockRun& run, const Tensor& own_input, const Tensor& own_add) const;
  // From there to the own rows of the branch's output.
  Tensor own_output(const BlockRun& run) const;

  // From the gradient dy [own rows, C] of the branch's output to that of the normed rows, on its
  // way over the ranks.
  Work backward_input(const BlockRun& run, const Tensor& dy) const;
  // Weight gradients of the products; those of the norm come by branch().norm_weights().
  void backward_weight(const BlockRun& run, const Tensor& dy) const;

 private:
  enum Saved : size_t { middle, pre };
  enum Pending : size_t { act, dpre };
  enum ForwardScratch : size_t { acted };

  int64_t inner() const { return split_.share(config_.feed_forward).count(); }
  int64_t pre_width() const {
    return inner() * (config_.activation == ActivationKind::swiglu ? 2 : 1);
  }
  Tensor pre_of(const BlockRun& run) const {
    return rows_of(run, run.saved[at_.saved[pre]], pre_width());
  }
  Tensor pending(const BlockRun& run, Pending which, int64_t width) const {
    return rows_of(run, run.pending[at_.pending[which]], width);
  }

  ModelConfig config_;
  TensorSplit split_;
  FeedForwardGroups groups_;
  ResidualBranch branch_;
  PartIndices at_;
};

}  // namespace rankine

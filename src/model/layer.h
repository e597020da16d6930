#pragma once
#include "model/block.h"

namespace rankine {

// x + attention(norm(x)), then + mlp(norm(.)): one transformer layer, or the tensor axis's part of
// one: heads of attention and a share of the feed-forward size. layer.cpp describes it and has its
// forward, layer_backward.cpp its backward.
class Layer final : public Block {
 public:
  Layer(const ModelConfig& config, int64_t layer, const ModelPart& part, Recompute recompute);

  BlockDescription describe(const Ops& ops, MicroShape shape, DType dtype) const override;
  void forward(const BlockRun& run, Tensor y) const override;
  void recompute(const BlockRun& run) const override;
  void backward_input(const BlockRun& run, const Tensor& dy, Tensor dx) const override;
  void backward_weight(const BlockRun& run, const Tensor& dy) const override;
  void backward(const BlockRun& run, const Tensor& dy, Tensor dx) const override;

 private:
  struct Pair {  // indices of a weight and its bias (or second weight), -1: absent
    int weight = -1, bias = -1;
  };
  // What a selective recomputation makes again comes last.
  enum Saved : size_t { input, qkv, middle, pre, stats1, stats2, head_rstd, attended, lse };
  enum Pending : size_t {
    act,
    dpre,
    dmiddle,
    dqkv,
    norm_gradients,
    head_norm_gradients,
    mlp_gradient,
    attention_gradient
  };
  enum ForwardScratch : size_t { normed, acted, branch, ready };
  enum BackwardScratch : size_t { dnormed, dattended, normed_again, ready_again };

  int64_t heads() const { return split_.heads(config_).count(); }
  int64_t kv_heads() const { return split_.kv_heads(config_).count(); }
  int64_t inner() const { return split_.share(config_.feed_forward).count(); }
  int64_t pre_width() const {
    return inner() * (config_.activation == ActivationKind::swiglu ? 2 : 1);
  }
  int64_t query_width() const { return heads() * config_.head_dim; }
  int64_t qkv_width() const { return (heads() + 2 * kv_heads()) * config_.head_dim; }
  int64_t stats_width() const { return config_.norm == NormKind::layer ? 2 : 1; }
  // The gradient that reaches a branch's product is not the one that reaches its sum.
  bool copies_branch_gradients() const { return config_.dropout > 0 || split_.splits_rows(); }
  AttentionShape attention_shape(MicroShape shape) const {
    return {shape.batch, shape.tokens,     heads(),
            kv_heads(),  config_.head_dim, config_.layer_window(layer_)};
  }
  AttentionShape masked_shape(const BlockRun& run) const {
    AttentionShape shape = attention_shape(run.shape);
    shape.first_keys = run.first_keys;
    return shape;
  }
  static Tensor at(std::span<const Tensor> tensors, int index) {
    return index < 0 ? Tensor{} : tensors[static_cast<size_t>(index)];
  }
  Tensor own_hidden(const BlockRun& run, const Tensor& t) const {
    return own_rows_of(run, t, config_.hidden);
  }
  Tensor all_hidden(const BlockRun& run, const Tensor& t) const {
    return rows_of(run, t, config_.hidden);
  }
  Tensor lse_of(const BlockRun& run) const {
    return run.saved[lse].as(Shape{run.shape.batch, heads(), run.shape.tokens});
  }

  void keep(BlockDescription& d, std::vector<TensorSpec> made) const;
  void forward_attention(const BlockRun& run) const;
  Tensor forward_middle(const BlockRun& run) const;
  Tensor attention_input(const BlockRun& run, const Tensor& buffer) const;
  void attend(const BlockRun& run, const Tensor& ready_qkv) const;
  Tensor joined_product(const BlockRun& run, const Tensor& x, Pair linear) const;

  // One of the two norms, with the pending gradients of its weights.
  struct NormUse {
    Pair weights;
    size_t x, stats, place;
  };
  NormUse norm1() const { return {norm1_, input, stats1, 0}; }
  NormUse norm2() const { return {norm2_, middle, stats2, 1}; }
  Tensor norm_gradient(const BlockRun& run, const NormUse& use, bool bias) const;
  void norm_grad(const BlockRun& run, const NormUse& use, const Tensor& residual, Tensor dx) const;
  Tensor norm_output_again(const BlockRun& run, const NormUse& use) const;
  Tensor branch_gradient(const BlockRun& run, const Tensor& dy, size_t place) const;
  void make_branch_gradient(const BlockRun& run, const Tensor& dy, size_t place,
                            int64_t site) const;
  Work mlp_input(const BlockRun& run, const Tensor& dy) const;
  Work attention_branch_input(const BlockRun& run) const;
  void attention_heads_grad(const BlockRun& run, const Tensor& dattn, const Tensor& dq) const;
  void mlp_weights(const BlockRun& run, const Tensor& dy) const;
  void attention_weights(const BlockRun& run) const;
  void linear_grads(const BlockRun& run, Pair linear, const Tensor& dy, const Tensor& x) const;
  void add_gradient(const BlockRun& run, const Tensor& from, int index) const;
  void norm_weights(const BlockRun& run, const NormUse& use) const;
  void all_norm_weights(const BlockRun& run) const;

  ModelConfig config_;
  int64_t layer_;
  TensorSplit split_;
  Recompute recompute_;
  Pair qkv_, out_, up_, down_, norm1_, norm2_, head_norm_;
};

}  // namespace rankine

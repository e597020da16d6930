#pragma once
#include "model/block_parameters.h"
#include "model/layer_part.h"

namespace rankine {

// What attention and feed-forward have in common: x + dropout(f(norm(x)) out^T), of which f is
// theirs. This has the norm, the product that ends in the residual stream, and the dropout, each
// with its backward. Tensors handed out have all rows unless their name says "own".
class ResidualBranch {
 public:
  struct Setup {
    const ModelConfig& config;
    const TensorSplit& split;
    NormGroups norm;
    LinearGroups out;      // the product whose inputs are split over the ranks
    const char* name;      // "attention"
    int64_t dropout_site;  // unlike any other of the model
  };
  explicit ResidualBranch(const Setup& setup);

  PartTensors tensors(MicroShape shape, DType dtype) const;
  void place(PartIndices at) { at_ = std::move(at); }

  // norm(x + add) of own rows, brought to all rows; the sum goes to `sum` where there is an addend.
  Tensor normed(const BlockRun& run, const Tensor& own_x, const Tensor& own_add,
                Tensor own_sum) const;
  // The own rows of dropout(x out^T + bias), x [R, inputs of this rank].
  Tensor own_output(const BlockRun& run, const Tensor& x) const;

  // From the gradient of the branch's output to that of x, dx [R, inputs of this rank].
  void output_grad(const BlockRun& run, const Tensor& dy, Tensor dx) const;
  // The gradient of the normed rows is to be written here; leave() starts its sum over the ranks.
  Tensor normed_gradient(const BlockRun& run) const;
  Work leave(const BlockRun& run) const { return run.region.leave(normed_gradient(run)); }
  // own_dx = residual + the norm's input gradient, from the sum that left.
  void norm_grad(const BlockRun& run, const Tensor& own_x, const Tensor& own_residual,
                 Tensor own_dx) const;
  // The norm's output made again.
  Tensor normed_again(const BlockRun& run, const Tensor& own_x) const;
  // Weight gradients: of the last product from its input x, of the norm from what norm_grad left.
  void output_weights(const BlockRun& run, const Tensor& dy, const Tensor& x) const;
  void norm_weights(const BlockRun& run) const;

 private:
  enum Saved : size_t { stats };
  enum Pending : size_t { norm_gradients, output_gradient };
  enum ForwardScratch : size_t { normed_rows, output };
  enum BackwardScratch : size_t { dnormed, normed_rows_again };

  // The gradient that reaches the product is not the one that reaches the residual's sum.
  bool copies_gradient() const { return config_.dropout > 0 || split_.splits_rows(); }
  Tensor gradient(const BlockRun& run, const Tensor& dy) const;
  Tensor norm_gradient(const BlockRun& run, bool bias) const;
  Tensor own_stats(const BlockRun& run) const;
  Tensor hidden(const BlockRun& run, const Tensor& t) const {
    return rows_of(run, t, config_.hidden);
  }

  ModelConfig config_;
  TensorSplit split_;
  NormGroups norm_;
  LinearGroups out_;
  std::string name_;
  int64_t dropout_site_;
  PartIndices at_;
};

// Weight gradients of one product: dw (+)= dy^T x, and its bias's.
void linear_gradients(const BlockRun& run, LinearGroups linear, const Tensor& dy, const Tensor& x);
// The gradient of a group becomes `from`, or grows by it.
void add_gradient(const BlockRun& run, const Tensor& from, int group);

}  // namespace rankine

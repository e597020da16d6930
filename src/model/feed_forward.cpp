#include "model/feed_forward.h"

#include <algorithm>

namespace rankine {

FeedForward::FeedForward(const ModelConfig& config, int64_t layer, const TensorSplit& split,
                         const FeedForwardGroups& groups)
    : config_(config),
      split_(split),
      groups_(groups),
      branch_({.config = config_,
               .split = split_,
               .norm = groups.norm,
               .out = groups.down,
               .name = "mlp",
               .dropout_site = 2 * layer + 2}) {}

PartTensors FeedForward::tensors(MicroShape shape, DType dtype) const {
  const int64_t r = shape.rows();
  PartTensors t;
  t.saved = {{{"middle", dtype, Shape{split_.rows(r), config_.hidden}}, Recompute::full},
             {{"pre", dtype, Shape{r, pre_width()}}, Recompute::full}};
  t.pending = {{"act", dtype, Shape{r, inner()}}, {"dpre", dtype, Shape{r, pre_width()}}};
  t.forward_scratch = {{"acted", dtype, Shape{r, inner()}}};
  return t;
}

size_t FeedForward::workspace(const Ops& ops, MicroShape shape, DType dtype) const {
  const int64_t r = shape.rows(), h = config_.hidden;
  return std::max({ops.linear_workspace(r, h, pre_width(), dtype),
                   ops.linear_workspace(r, inner(), h, dtype), ops.norm_workspace(r, h)});
}

double FeedForward::up_flops(MicroShape shape) const {
  return 2 * static_cast<double>(shape.rows()) * static_cast<double>(config_.hidden * pre_width());
}

double FeedForward::matmul_flops(MicroShape shape) const {
  return up_flops(shape) +
         2 * static_cast<double>(shape.rows()) * static_cast<double>(config_.hidden * inner());
}

void FeedForward::up(const BlockRun& run, const Tensor& own_input, const Tensor& own_add) const {
  const Tensor n = branch_.normed(run, own_input, own_add, own_x(run));
  apply_linear(run, n, group_of(run.params, groups_.up.weight),
               group_of(run.params, groups_.up.bias), pre_of(run));
}

Tensor FeedForward::own_output(const BlockRun& run) const {
  const Tensor a = rows_of(run, run.scratch[at_.forward_scratch[acted]], inner());
  run.ops.activation(config_.activation, pre_of(run), a);
  return branch_.own_output(run, a);
}

Work FeedForward::backward_input(const BlockRun& run, const Tensor& dy) const {
  const Tensor da = pending(run, act, inner()), dp = pending(run, dpre, pre_width());
  branch_.output_grad(run, dy, da);
  run.ops.activation_grad(config_.activation, pre_of(run), da, dp);
  run.ops.linear_input_grad(dp, group_of(run.params, groups_.up.weight),
                            branch_.normed_gradient(run));
  return branch_.leave(run);
}

void FeedForward::backward_weight(const BlockRun& run, const Tensor& dy) const {
  branch_.output_weights(run, dy, pending(run, act, inner()));
  linear_gradients(run, groups_.up, pending(run, dpre, pre_width()),
                   branch_.normed_again(run, own_x(run)));
}

}  // namespace rankine

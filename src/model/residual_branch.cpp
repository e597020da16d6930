#include "model/residual_branch.h"

namespace rankine {

ResidualBranch::ResidualBranch(const Setup& setup)
    : config_(setup.config),
      split_(setup.split),
      norm_(setup.norm),
      out_(setup.out),
      name_(setup.name),
      dropout_site_(setup.dropout_site) {}

PartTensors ResidualBranch::tensors(MicroShape shape, DType dtype) const {
  const int64_t r = shape.rows(), own = split_.rows(r), h = config_.hidden;
  const int64_t width = stats_width(config_.norm);
  PartTensors t;
  t.saved = {{{name_ + " norm stats", DType::f32, Shape{own, width}}, Recompute::full}};
  t.pending = {{name_ + " norm gradients", DType::f32, Shape{width * h}}};
  if (copies_gradient()) t.pending.push_back({name_ + " gradient", dtype, Shape{r, h}});
  t.forward_scratch = {{"normed", dtype, Shape{r, h}}, {"branch", dtype, Shape{r, h}}};
  // With several ranks weights' gradients are made while dnormed is summed.
  t.backward_scratch = {{"dnormed", dtype, Shape{r, h}},
                        {"normed again", dtype, Shape{split_.ranks > 1 ? r : 0, h}}};
  return t;
}

Tensor ResidualBranch::own_stats(const BlockRun& run) const {
  return own_rows_of(run, run.saved[at_.saved[stats]], stats_width(config_.norm));
}

Tensor ResidualBranch::normed(const BlockRun& run, const Tensor& own_x, const Tensor& own_add,
                              Tensor own_sum) const {
  const Tensor n = hidden(run, run.scratch[at_.forward_scratch[normed_rows]]);
  run.ops.norm({config_.norm, static_cast<float>(config_.norm_epsilon), own_x, own_add,
                group_of(run.params, norm_.weight), group_of(run.params, norm_.bias)},
               own_sum, run.region.own(n), own_stats(run));
  run.region.enter(n);
  return n;
}

// One rank adds the bias.
Tensor ResidualBranch::own_output(const BlockRun& run, const Tensor& x) const {
  const Tensor all = hidden(run, run.scratch[at_.forward_scratch[output]]);
  apply_linear(run, x, group_of(run.params, out_.weight),
               split_.rank == 0 ? group_of(run.params, out_.bias) : Tensor{}, all);
  run.region.leave(all).lead(run.ops.queue());
  const Tensor own = run.region.own(all);
  apply_dropout(run, config_, dropout_site_, own);
  return own;
}

// All rows of the gradient behind the branch's dropout.
Tensor ResidualBranch::gradient(const BlockRun& run, const Tensor& dy) const {
  return hidden(run, copies_gradient() ? run.pending[at_.pending[output_gradient]] : dy);
}

void ResidualBranch::output_grad(const BlockRun& run, const Tensor& dy, Tensor dx) const {
  if (copies_gradient()) {
    const Tensor all = gradient(run, dy), own = run.region.own(all);
    run.ops.cast(own_rows_of(run, dy, config_.hidden), own);
    apply_dropout(run, config_, dropout_site_, own);
    run.region.enter(all);
  }
  run.ops.linear_input_grad(gradient(run, dy), group_of(run.params, out_.weight), dx);
}

Tensor ResidualBranch::normed_gradient(const BlockRun& run) const {
  return hidden(run, run.scratch[at_.backward_scratch[dnormed]]);
}

// f32 [C], where the gradient of the norm's weight or bias waits for norm_weights().
Tensor ResidualBranch::norm_gradient(const BlockRun& run, bool bias) const {
  if (bias && norm_.bias < 0) return {};
  return run.pending[at_.pending[norm_gradients]].range(bias ? config_.hidden : 0, config_.hidden);
}

void ResidualBranch::norm_grad(const BlockRun& run, const Tensor& own_x, const Tensor& own_residual,
                               Tensor own_dx) const {
  run.ops.norm_grad({config_.norm, own_x, own_stats(run), group_of(run.params, norm_.weight),
                     run.region.own(normed_gradient(run)), own_residual, false},
                    own_dx, norm_gradient(run, false), norm_gradient(run, true));
}

Tensor ResidualBranch::normed_again(const BlockRun& run, const Tensor& own_x) const {
  const BackwardScratch place = split_.ranks > 1 ? normed_rows_again : dnormed;
  const Tensor n = hidden(run, run.scratch[at_.backward_scratch[place]]);
  run.ops.norm_again(config_.norm, own_x, own_stats(run), group_of(run.params, norm_.weight),
                     group_of(run.params, norm_.bias), run.region.own(n));
  run.region.enter(n);
  return n;
}

void ResidualBranch::output_weights(const BlockRun& run, const Tensor& dy, const Tensor& x) const {
  linear_gradients(run, out_, gradient(run, dy), x);
}

void ResidualBranch::norm_weights(const BlockRun& run) const {
  add_gradient(run, norm_gradient(run, false), norm_.weight);
  if (norm_.bias >= 0) add_gradient(run, norm_gradient(run, true), norm_.bias);
}

void linear_gradients(const BlockRun& run, LinearGroups linear, const Tensor& dy, const Tensor& x) {
  run.ops.linear_weight_grad(dy, x, group_of(run.grads, linear.weight), run.accumulate);
  if (linear.bias >= 0) run.ops.bias_grad(dy, group_of(run.grads, linear.bias), run.accumulate);
}

void add_gradient(const BlockRun& run, const Tensor& from, int group) {
  const Tensor to = group_of(run.grads, group);
  if (run.accumulate)
    run.ops.add(to, from, to);
  else
    run.ops.cast(from, to);
}

}  // namespace rankine

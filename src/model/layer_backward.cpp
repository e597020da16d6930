#include "model/layer.h"

namespace rankine {

// f32 [C], where the gradient of a norm's weight or bias waits for backward_weight.
Tensor Layer::norm_gradient(const BlockRun& run, const NormUse& use, bool bias) const {
  if (bias && use.weights.bias < 0) return {};
  const int64_t place = static_cast<int64_t>(use.place) * stats_width() + (bias ? 1 : 0);
  return run.pending[norm_gradients].range(place * config_.hidden, config_.hidden);
}

void Layer::norm_grad(const BlockRun& run, const NormUse& use, const Tensor& residual,
                      Tensor dx) const {
  run.ops.norm_grad(
      {config_.norm, own_hidden(run, run.saved[use.x]),
       own_rows_of(run, run.saved[use.stats], stats_width()), at(run.params, use.weights.weight),
       run.region.own(all_hidden(run, run.scratch[dnormed])), residual, false},
      dx, norm_gradient(run, use, false), norm_gradient(run, use, true));
}

// All rows of a norm's output.
Tensor Layer::norm_output_again(const BlockRun& run, const NormUse& use) const {
  const Tensor n = all_hidden(run, run.scratch[split_.ranks > 1 ? normed_again : dnormed]);
  run.ops.norm_again(config_.norm, own_hidden(run, run.saved[use.x]),
                     own_rows_of(run, run.saved[use.stats], stats_width()),
                     at(run.params, use.weights.weight), at(run.params, use.weights.bias),
                     run.region.own(n));
  run.region.enter(n);
  return n;
}

// All rows of the gradient at the end of a residual branch, behind its dropout.
Tensor Layer::branch_gradient(const BlockRun& run, const Tensor& dy, size_t place) const {
  return all_hidden(run, copies_branch_gradients() ? run.pending[place] : dy);
}

void Layer::make_branch_gradient(const BlockRun& run, const Tensor& dy, size_t place,
                                 int64_t site) const {
  if (!copies_branch_gradients()) return;
  const Tensor all = all_hidden(run, run.pending[place]), own = run.region.own(all);
  run.ops.cast(own_hidden(run, dy), own);
  apply_dropout(run, config_, site, own);
  run.region.enter(all);
}

// From the gradient of the layer's output to that of the second norm's output, in dnormed.
Work Layer::mlp_input(const BlockRun& run, const Tensor& dy) const {
  Ops& ops = run.ops;
  const Tensor da = rows_of(run, run.pending[act], inner());
  const Tensor dp = rows_of(run, run.pending[dpre], pre_width());
  const Tensor dn = all_hidden(run, run.scratch[dnormed]);
  make_branch_gradient(run, dy, mlp_gradient, 2 * layer_ + 2);
  ops.linear_input_grad(branch_gradient(run, dy, mlp_gradient), at(run.params, down_.weight), da);
  ops.activation_grad(config_.activation, rows_of(run, run.saved[pre], pre_width()), da, dp);
  ops.linear_input_grad(dp, at(run.params, up_.weight), dn);
  return run.region.leave(dn);
}

void Layer::attention_heads_grad(const BlockRun& run, const Tensor& dattn, const Tensor& dq) const {
  Ops& ops = run.ops;
  const Tensor raw = rows_of(run, run.saved[qkv], qkv_width());
  const Tensor read = config_.qk_norm ? attention_input(run, run.scratch[ready_again]) : raw;
  const AttentionShape shape = masked_shape(run);
  ops.attention_grad(shape, read, rows_of(run, run.saved[attended], query_width()), dattn,
                     lse_of(run), dq);
  if (config_.position == PositionKind::rope)
    ops.rope({run.shape.tokens, 0, heads() + kv_heads(), config_.head_dim}, run.rope_table, dq,
             true);
  if (!config_.qk_norm) return;
  const Tensor gradients = run.pending[head_norm_gradients];
  ops.head_norm_grad(shape, raw, rows_of(run, run.saved[head_rstd], heads() + kv_heads()),
                     at(run.params, head_norm_.weight), at(run.params, head_norm_.bias), dq,
                     gradients.range(0, config_.head_dim),
                     gradients.range(config_.head_dim, config_.head_dim), false);
}

// From dmiddle to the gradient of the first norm's output, in dnormed.
Work Layer::attention_branch_input(const BlockRun& run) const {
  const Tensor dm = run.pending[dmiddle], dn = all_hidden(run, run.scratch[dnormed]);
  const Tensor dattn = rows_of(run, run.scratch[dattended], query_width());
  const Tensor dq = rows_of(run, run.pending[dqkv], qkv_width());
  make_branch_gradient(run, dm, attention_gradient, 2 * layer_ + 1);
  run.ops.linear_input_grad(branch_gradient(run, dm, attention_gradient),
                            at(run.params, out_.weight), dattn);
  attention_heads_grad(run, dattn, dq);
  run.ops.linear_input_grad(dq, at(run.params, qkv_.weight), dn);
  return run.region.leave(dn);
}

void Layer::backward_input(const BlockRun& run, const Tensor& dy, Tensor dx) const {
  const Tensor dm = own_hidden(run, run.pending[dmiddle]);
  mlp_input(run, dy).lead(run.ops.queue());
  norm_grad(run, norm2(), own_hidden(run, dy), dm);
  attention_branch_input(run).lead(run.ops.queue());
  norm_grad(run, norm1(), dm, own_hidden(run, dx));
}

void Layer::linear_grads(const BlockRun& run, Pair linear, const Tensor& dy,
                         const Tensor& x) const {
  run.ops.linear_weight_grad(dy, x, at(run.grads, linear.weight), run.accumulate);
  if (linear.bias >= 0) run.ops.bias_grad(dy, at(run.grads, linear.bias), run.accumulate);
}

void Layer::add_gradient(const BlockRun& run, const Tensor& from, int index) const {
  if (index < 0) return;
  const Tensor to = at(run.grads, index);
  if (run.accumulate)
    run.ops.add(to, from, to);
  else
    run.ops.cast(from, to);
}

void Layer::norm_weights(const BlockRun& run, const NormUse& use) const {
  add_gradient(run, norm_gradient(run, use, false), use.weights.weight);
  add_gradient(run, norm_gradient(run, use, true), use.weights.bias);
}

void Layer::all_norm_weights(const BlockRun& run) const {
  norm_weights(run, norm2());
  norm_weights(run, norm1());
  if (!config_.qk_norm) return;
  const Tensor gradients = run.pending[head_norm_gradients];
  add_gradient(run, gradients.range(0, config_.head_dim), head_norm_.weight);
  add_gradient(run, gradients.range(config_.head_dim, config_.head_dim), head_norm_.bias);
}

void Layer::mlp_weights(const BlockRun& run, const Tensor& dy) const {
  linear_grads(run, down_, branch_gradient(run, dy, mlp_gradient),
               rows_of(run, run.pending[act], inner()));
  linear_grads(run, up_, rows_of(run, run.pending[dpre], pre_width()),
               norm_output_again(run, norm2()));
}

void Layer::attention_weights(const BlockRun& run) const {
  linear_grads(run, out_, branch_gradient(run, run.pending[dmiddle], attention_gradient),
               rows_of(run, run.saved[attended], query_width()));
  linear_grads(run, qkv_, rows_of(run, run.pending[dqkv], qkv_width()),
               norm_output_again(run, norm1()));
}

void Layer::backward_weight(const BlockRun& run, const Tensor& dy) const {
  mlp_weights(run, dy);
  attention_weights(run);
  all_norm_weights(run);
}

// With several ranks the sums over them run beside the products of the weights' gradients.
void Layer::backward(const BlockRun& run, const Tensor& dy, Tensor dx) const {
  if (split_.ranks == 1) return Block::backward(run, dy, dx);
  const Tensor dm = own_hidden(run, run.pending[dmiddle]);
  Work sum = mlp_input(run, dy);
  mlp_weights(run, dy);
  sum.lead(run.ops.queue());
  norm_grad(run, norm2(), own_hidden(run, dy), dm);
  sum = attention_branch_input(run);
  attention_weights(run);
  sum.lead(run.ops.queue());
  norm_grad(run, norm1(), dm, own_hidden(run, dx));
  all_norm_weights(run);
}

}  // namespace rankine

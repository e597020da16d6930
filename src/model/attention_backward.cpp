#include "model/attention.h"

namespace rankine {

void Attention::heads_grad(const BlockRun& run, const Tensor& dout, const Tensor& dqkv_rows) const {
  Ops& ops = run.ops;
  const Tensor raw = saved(run, qkv, qkv_width());
  const Tensor read =
      config_.qk_norm ? input(run, run.scratch[at_.backward_scratch[ready_again]]) : raw;
  const AttentionShape shape = masked_shape(run);
  ops.attention_grad(shape, read, saved(run, attended, query_width()), dout, lse_of(run),
                     dqkv_rows);
  if (config_.position == PositionKind::rope)
    ops.rope({run.shape.tokens, 0, heads() + kv_heads(), config_.head_dim}, run.rope_table,
             dqkv_rows, true);
  if (!config_.qk_norm) return;
  const Tensor gradients = run.pending[at_.pending[head_norm_gradients]];
  ops.head_norm_grad(shape, raw, saved(run, head_rstd, heads() + kv_heads()),
                     group_of(run.params, groups_.q_norm), group_of(run.params, groups_.k_norm),
                     dqkv_rows, gradients.range(0, config_.head_dim),
                     gradients.range(config_.head_dim, config_.head_dim), false);
}

Work Attention::backward_input(const BlockRun& run, const Tensor& dy) const {
  const Tensor dout = rows_of(run, run.scratch[at_.backward_scratch[dattended]], query_width());
  const Tensor dqkv_rows = rows_of(run, run.pending[at_.pending[dqkv]], qkv_width());
  branch_.output_grad(run, dy, dout);
  heads_grad(run, dout, dqkv_rows);
  run.ops.linear_input_grad(dqkv_rows, group_of(run.params, groups_.qkv.weight),
                            branch_.normed_gradient(run));
  return branch_.leave(run);
}

void Attention::backward_weight(const BlockRun& run, const Tensor& dy, const Tensor& own_x) const {
  branch_.output_weights(run, dy, saved(run, attended, query_width()));
  linear_gradients(run, groups_.qkv, rows_of(run, run.pending[at_.pending[dqkv]], qkv_width()),
                   branch_.normed_again(run, own_x));
}

void Attention::norm_weights(const BlockRun& run) const {
  branch_.norm_weights(run);
  if (!config_.qk_norm) return;
  const Tensor gradients = run.pending[at_.pending[head_norm_gradients]];
  add_gradient(run, gradients.range(0, config_.head_dim), groups_.q_norm);
  add_gradient(run, gradients.range(config_.head_dim, config_.head_dim), groups_.k_norm);
}

}  // namespace rankine

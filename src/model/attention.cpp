#include "model/attention.h"

#include <algorithm>

namespace rankine {
namespace {

// The rows of one of the call's sequences.
Tensor sequence_of(const BlockRun& run, const Tensor& rows, size_t sequence) {
  return rows.rows(static_cast<int64_t>(sequence) * run.shape.tokens, run.shape.tokens);
}

}  // namespace

Attention::Attention(const ModelConfig& config, int64_t layer, const TensorSplit& split,
                     const AttentionGroups& groups)
    : config_(config),
      split_(split),
      layer_(layer),
      groups_(groups),
      branch_({.config = config_,
               .split = split_,
               .norm = groups.norm,
               .out = groups.out,
               .name = "attention",
               .dropout_site = 2 * layer + 1}) {}

PartTensors Attention::tensors(MicroShape shape, DType dtype) const {
  const int64_t r = shape.rows(), w = qkv_width(), q = query_width();
  PartTensors t;
  t.saved = {
      {{"qkv", dtype, Shape{r, w}}, Recompute::full},
      {{"head_rstd", DType::f32, Shape{config_.qk_norm ? r : 0, heads() + kv_heads()}},
       Recompute::full},
      {{"attended", dtype, Shape{r, q}}, Recompute::selective},
      {{"lse", DType::f32, Shape{shape.batch, heads(), shape.tokens}}, Recompute::selective}};
  t.pending = {
      {"dqkv", dtype, Shape{r, w}},
      {"head norm gradients", DType::f32, Shape{config_.qk_norm ? 2 * config_.head_dim : 0}}};
  t.backward_scratch = {{"dattended", dtype, Shape{r, q}}};
  if (config_.qk_norm) {
    t.forward_scratch.push_back({"ready", dtype, Shape{r, w}});
    t.backward_scratch.push_back({"ready", dtype, Shape{r, w}});
  }
  return t;
}

size_t Attention::workspace(const Ops& ops, MicroShape shape, DType dtype) const {
  const int64_t r = shape.rows(), h = config_.hidden;
  return std::max({ops.linear_workspace(r, h, qkv_width(), dtype),
                   ops.linear_workspace(r, query_width(), h, dtype),
                   ops.norm_workspace(r, std::max(h, config_.query_width())),
                   ops.attention_workspace(shape_of(shape), dtype)});
}

double Attention::matmul_flops(MicroShape shape) const {
  return 2 * static_cast<double>(shape.rows()) *
         static_cast<double>(config_.hidden * (qkv_width() + query_width()));
}

double Attention::attention_flops(MicroShape shape) const {
  return 2 * static_cast<double>(shape.rows()) * static_cast<double>(shape.tokens * query_width());
}

AttentionShape Attention::shape_of(MicroShape shape) const {
  return {shape.batch, shape.tokens,     heads(),
          kv_heads(),  config_.head_dim, config_.layer_window(layer_)};
}

AttentionShape Attention::masked_shape(const BlockRun& run) const {
  AttentionShape shape = shape_of(run.shape);
  shape.first_keys = run.first_keys;
  return shape;
}

Tensor Attention::lse_of(const BlockRun& run) const {
  return run.saved[at_.saved[lse]].as(Shape{run.shape.batch, heads(), run.shape.tokens});
}

// The qkv that attention reads: normed per head where the family does so, then rotated. Without
// head norms this works in place on the saved qkv; with them in `buffer`, and again in backward.
Tensor Attention::input(const BlockRun& run, const Tensor& buffer) const {
  Tensor x = saved(run, qkv, qkv_width());
  if (config_.qk_norm) {
    const Tensor ready_qkv = rows_of(run, buffer, qkv_width());
    run.ops.head_norm(shape_of(run.shape), static_cast<float>(config_.norm_epsilon), x,
                      group_of(run.params, groups_.q_norm), group_of(run.params, groups_.k_norm),
                      ready_qkv, saved(run, head_rstd, heads() + kv_heads()));
    x = ready_qkv;
  }
  if (config_.position != PositionKind::rope) return x;
  RopeShape rotation{run.shape.tokens, 0, heads() + kv_heads(), config_.head_dim};
  if (run.caches.empty()) run.ops.rope(rotation, run.rope_table, x, false);
  for (size_t s = 0; s < run.caches.size(); ++s) {
    rotation.first_position = run.caches[s].past;
    run.ops.rope(rotation, run.rope_table, sequence_of(run, x, s), false);
  }
  return x;
}

Tensor Attention::forward_buffer(const BlockRun& run) const {
  return config_.qk_norm ? run.scratch[at_.forward_scratch[ready]] : Tensor{};
}

void Attention::attend_to(const BlockRun& run, const Tensor& ready_qkv) const {
  const Tensor out = saved(run, attended, query_width());
  if (run.caches.empty()) return run.ops.attention(masked_shape(run), ready_qkv, out, lse_of(run));
  run.ops.attention_cached(shape_of(run.shape), ready_qkv, run.caches, out);
}

void Attention::attend(const BlockRun& run, const Tensor& own_x) const {
  const Tensor n = branch_.normed(run, own_x, {}, {});
  apply_linear(run, n, group_of(run.params, groups_.qkv.weight),
               group_of(run.params, groups_.qkv.bias), saved(run, qkv, qkv_width()));
  attend_to(run, input(run, forward_buffer(run)));
}

Tensor Attention::own_output(const BlockRun& run) const {
  return branch_.own_output(run, saved(run, attended, query_width()));
}

void Attention::attend_again(const BlockRun& run) const {
  // Without head norms the saved qkv is rotated already.
  attend_to(run, config_.qk_norm ? input(run, forward_buffer(run)) : saved(run, qkv, qkv_width()));
}

}  // namespace rankine

#include "model/layer.h"

#include <algorithm>

#include "model/layer_parameters.h"

namespace rankine {

Layer::Layer(const ModelConfig& config, int64_t layer, const ModelPart& part)
    : config_(config), layer_(layer), split_(part.split) {
  const auto groups = joined_groups(layer_parameters(config, layer, split_));
  const auto index = [&](std::string_view suffix) {
    for (size_t i = 0; i < groups.size(); ++i)
      if (groups[i].name.ends_with(suffix)) return static_cast<int>(i);
    return -1;
  };
  const bool gated = config.activation == ActivationKind::swiglu;
  qkv_ = {index("attention.q.weight"), index("attention.q.bias")};
  out_ = {index("attention.out.weight"), index("attention.out.bias")};
  up_ = gated ? Pair{index("mlp.gate.weight"), index("mlp.gate.bias")}
              : Pair{index("mlp.up.weight"), index("mlp.up.bias")};
  down_ = {index("mlp.down.weight"), index("mlp.down.bias")};
  norm1_ = {index("attention_norm.weight"), index("attention_norm.bias")};
  norm2_ = {index("mlp_norm.weight"), index("mlp_norm.bias")};
  head_norm_ = {index("q_norm.weight"), index("k_norm.weight")};
}

BlockDescription Layer::describe(const Ops& ops, MicroShape shape, DType dtype) const {
  const ModelConfig& c = config_;
  const int64_t r = shape.rows(), own = split_.rows(r), h = c.hidden;
  const int64_t w = qkv_width(), f = inner(), q = query_width();
  const int64_t stats = c.norm == NormKind::layer ? 2 : 1;
  BlockDescription d;
  d.name = fmt::format("layers.{}", layer_);
  d.parameters = layer_parameters(c, layer_, split_);
  d.output = {"output", dtype, Shape{own, h}};
  d.saved = {{"input", dtype, Shape{own, h}},
             {"qkv", dtype, Shape{r, w}},
             {"attended", dtype, Shape{r, q}},
             {"middle", dtype, Shape{own, h}},
             {"pre", dtype, Shape{r, pre_width()}},
             {"stats1", DType::f32, Shape{own, stats}},
             {"stats2", DType::f32, Shape{own, stats}},
             {"lse", DType::f32, Shape{shape.batch, heads(), shape.tokens}}};
  d.pending = {{"act", dtype, Shape{r, f}},
               {"dpre", dtype, Shape{r, pre_width()}},
               {"dmiddle", dtype, Shape{own, h}},
               {"dqkv", dtype, Shape{r, w}},
               {"norm gradients", DType::f32, Shape{2 * stats * h}},
               {"head norm gradients", DType::f32, Shape{c.qk_norm ? 2 * c.head_dim : 0}}};
  if (copies_branch_gradients()) {
    d.pending.push_back({"mlp gradient", dtype, Shape{r, h}});
    d.pending.push_back({"attention gradient", dtype, Shape{r, h}});
  }
  d.forward_scratch = {{"normed", dtype, Shape{r, h}},
                       {"acted", dtype, Shape{r, f}},
                       {"branch", dtype, Shape{r, h}}};
  // With several ranks weights' gradients are made while dnormed is summed.
  d.backward_scratch = {{"dnormed", dtype, Shape{r, h}},
                        {"dattended", dtype, Shape{r, q}},
                        {"normed again", dtype, Shape{split_.ranks > 1 ? r : 0, h}}};
  if (c.qk_norm) {
    d.saved.push_back({"head_rstd", DType::f32, Shape{r, heads() + kv_heads()}});
    d.forward_scratch.push_back({"ready", dtype, Shape{r, w}});
    d.backward_scratch.push_back({"ready", dtype, Shape{r, w}});
  }
  d.workspace = std::max(
      {ops.linear_workspace(r, h, w, dtype), ops.linear_workspace(r, q, h, dtype),
       ops.linear_workspace(r, h, pre_width(), dtype), ops.linear_workspace(r, f, h, dtype),
       ops.norm_workspace(r, std::max({h, c.query_width()})),
       ops.attention_workspace(attention_shape(shape), dtype)});
  const auto rows = static_cast<double>(r);
  d.matmul_flops = 2 * rows * static_cast<double>(h * (w + pre_width()) + (q + f) * h);
  d.attention_flops = 2 * rows * static_cast<double>(shape.tokens * q);
  return d;
}

// The qkv that attention reads: normed per head where the family does so, then rotated. Without
// head norms this works in place on the saved qkv; with them in `buffer`, and again in backward.
Tensor Layer::attention_input(const BlockRun& run, const Tensor& buffer, int64_t past) const {
  const AttentionShape shape = attention_shape(run.shape);
  Tensor x = rows_of(run, run.saved[qkv], qkv_width());
  if (config_.qk_norm) {
    const Tensor ready_qkv = rows_of(run, buffer, qkv_width());
    const Tensor rstd = rows_of(run, run.saved[head_rstd], heads() + kv_heads());
    run.ops.head_norm(shape, static_cast<float>(config_.norm_epsilon), x,
                      at(run.params, head_norm_.weight), at(run.params, head_norm_.bias), ready_qkv,
                      rstd);
    x = ready_qkv;
  }
  if (config_.position == PositionKind::rope)
    run.ops.rope({run.shape.tokens, past, heads() + kv_heads(), config_.head_dim}, run.rope_table,
                 x, false);
  return x;
}

void Layer::attend(const BlockRun& run, const Tensor& ready_qkv) const {
  const AttentionShape shape = attention_shape(run.shape);
  const Tensor out = rows_of(run, run.saved[attended], query_width());
  if (run.cache != nullptr)
    run.ops.attention_cached(shape, ready_qkv, run.cache->past, run.cache->keys, run.cache->values,
                             out);
  else
    run.ops.attention(shape, ready_qkv, out, lse_of(run));
}

// A product whose inputs are split over the ranks: the sum of own rows. One rank adds the bias.
Tensor Layer::joined_product(const BlockRun& run, const Tensor& x, Pair linear) const {
  const Tensor all = rows_of(run, run.scratch[branch], config_.hidden);
  run.ops.linear(x, at(run.params, linear.weight),
                 split_.rank == 0 ? at(run.params, linear.bias) : Tensor{}, all);
  run.region.leave(all).wait();
  return run.region.own(all);
}

void Layer::forward(const BlockRun& run, Tensor y) const {
  Ops& ops = run.ops;
  const auto epsilon = static_cast<float>(config_.norm_epsilon);
  const int64_t past = run.cache != nullptr ? run.cache->past : 0, stats = stats_width();
  const Tensor x = own_hidden(run, run.saved[input]), x2 = own_hidden(run, run.saved[middle]);
  const Tensor n = rows_of(run, run.scratch[normed], config_.hidden), own = run.region.own(n);

  ops.norm(
      {config_.norm, epsilon, x, {}, at(run.params, norm1_.weight), at(run.params, norm1_.bias)},
      {}, own, own_rows_of(run, run.saved[stats1], stats));
  run.region.enter(n);
  ops.linear(n, at(run.params, qkv_.weight), at(run.params, qkv_.bias),
             rows_of(run, run.saved[qkv], qkv_width()));
  attend(run, attention_input(run, config_.qk_norm ? run.scratch[ready] : Tensor{}, past));
  const Tensor from_attention =
      joined_product(run, rows_of(run, run.saved[attended], query_width()), out_);
  apply_dropout(run, config_, 2 * layer_ + 1, from_attention);
  ops.norm({config_.norm, epsilon, x, from_attention, at(run.params, norm2_.weight),
            at(run.params, norm2_.bias)},
           x2, own, own_rows_of(run, run.saved[stats2], stats));
  run.region.enter(n);
  const Tensor p = rows_of(run, run.saved[pre], pre_width());
  ops.linear(n, at(run.params, up_.weight), at(run.params, up_.bias), p);
  const Tensor a = rows_of(run, run.scratch[acted], inner());
  ops.activation(config_.activation, p, a);
  const Tensor from_mlp = joined_product(run, a, down_);
  apply_dropout(run, config_, 2 * layer_ + 2, from_mlp);
  ops.add(x2, from_mlp, own_hidden(run, y));
}

std::unique_ptr<Block> make_layer(const ModelConfig& config, int64_t layer, const ModelPart& part) {
  return std::make_unique<Layer>(config, layer, part);
}

}  // namespace rankine

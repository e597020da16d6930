#include "model/layer.h"

#include <algorithm>

#include "model/layer_parameters.h"

namespace rankine {

Layer::Layer(const ModelConfig& config, int64_t layer, const ModelPart& part, Recompute recompute)
    : config_(config), layer_(layer), split_(part.split), recompute_(recompute) {
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
  keep(d, {{"input", dtype, Shape{own, h}},
           {"qkv", dtype, Shape{r, w}},
           {"middle", dtype, Shape{own, h}},
           {"pre", dtype, Shape{r, pre_width()}},
           {"stats1", DType::f32, Shape{own, stats}},
           {"stats2", DType::f32, Shape{own, stats}},
           {"head_rstd", DType::f32, Shape{c.qk_norm ? r : 0, heads() + kv_heads()}},
           {"attended", dtype, Shape{r, q}},
           {"lse", DType::f32, Shape{shape.batch, heads(), shape.tokens}}});
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
  if (recompute_ != Recompute::none) d.recompute_flops = d.attention_flops;
  if (recompute_ == Recompute::full)
    d.recompute_flops += 2 * rows * static_cast<double>(h * (w + pre_width()) + q * h);
  return d;
}

// Of what the forward makes, in the order of Saved, a part is kept for the backward.
void Layer::keep(BlockDescription& d, std::vector<TensorSpec> made) const {
  const size_t kept = recompute_ == Recompute::none        ? made.size()
                      : recompute_ == Recompute::selective ? size_t{attended}
                                                           : size_t{qkv};
  const auto end = made.begin() + static_cast<std::ptrdiff_t>(kept);
  d.saved.assign(made.begin(), end);
  d.recomputed.assign(end, made.end());
}

namespace {

// The rows of one of the call's sequences.
Tensor sequence_of(const BlockRun& run, const Tensor& rows, size_t sequence) {
  return rows.rows(static_cast<int64_t>(sequence) * run.shape.tokens, run.shape.tokens);
}

}  // namespace

// The qkv that attention reads: normed per head where the family does so, then rotated. Without
// head norms this works in place on the saved qkv; with them in `buffer`, and again in backward.
Tensor Layer::attention_input(const BlockRun& run, const Tensor& buffer) const {
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
  if (config_.position != PositionKind::rope) return x;
  RopeShape rotation{run.shape.tokens, 0, heads() + kv_heads(), config_.head_dim};
  if (run.caches.empty()) run.ops.rope(rotation, run.rope_table, x, false);
  for (size_t s = 0; s < run.caches.size(); ++s) {
    rotation.first_position = run.caches[s].past;
    run.ops.rope(rotation, run.rope_table, sequence_of(run, x, s), false);
  }
  return x;
}

void Layer::attend(const BlockRun& run, const Tensor& ready_qkv) const {
  const AttentionShape shape = masked_shape(run);
  const Tensor out = rows_of(run, run.saved[attended], query_width());
  if (run.caches.empty()) return run.ops.attention(shape, ready_qkv, out, lse_of(run));
  run.ops.attention_cached(attention_shape(run.shape), ready_qkv, run.caches, out);
}

// A product whose inputs are split over the ranks: the sum of own rows. One rank adds the bias.
Tensor Layer::joined_product(const BlockRun& run, const Tensor& x, Pair linear) const {
  const Tensor all = rows_of(run, run.scratch[branch], config_.hidden);
  apply_linear(run, x, at(run.params, linear.weight),
               split_.rank == 0 ? at(run.params, linear.bias) : Tensor{}, all);
  run.region.leave(all).lead(run.ops.queue());
  return run.region.own(all);
}

// Up to attention's output.
void Layer::forward_attention(const BlockRun& run) const {
  const auto epsilon = static_cast<float>(config_.norm_epsilon);
  const Tensor n = rows_of(run, run.scratch[normed], config_.hidden);
  run.ops.norm({config_.norm,
                epsilon,
                own_hidden(run, run.saved[input]),
                {},
                at(run.params, norm1_.weight),
                at(run.params, norm1_.bias)},
               {}, run.region.own(n), own_rows_of(run, run.saved[stats1], stats_width()));
  run.region.enter(n);
  apply_linear(run, n, at(run.params, qkv_.weight), at(run.params, qkv_.bias),
               rows_of(run, run.saved[qkv], qkv_width()));
  attend(run, attention_input(run, config_.qk_norm ? run.scratch[ready] : Tensor{}));
}

// From there up to the activation's input.
Tensor Layer::forward_middle(const BlockRun& run) const {
  const auto epsilon = static_cast<float>(config_.norm_epsilon);
  const Tensor n = rows_of(run, run.scratch[normed], config_.hidden);
  const Tensor from_attention =
      joined_product(run, rows_of(run, run.saved[attended], query_width()), out_);
  apply_dropout(run, config_, 2 * layer_ + 1, from_attention);
  run.ops.norm({config_.norm, epsilon, own_hidden(run, run.saved[input]), from_attention,
                at(run.params, norm2_.weight), at(run.params, norm2_.bias)},
               own_hidden(run, run.saved[middle]), run.region.own(n),
               own_rows_of(run, run.saved[stats2], stats_width()));
  run.region.enter(n);
  const Tensor p = rows_of(run, run.saved[pre], pre_width());
  apply_linear(run, n, at(run.params, up_.weight), at(run.params, up_.bias), p);
  return p;
}

void Layer::forward(const BlockRun& run, Tensor y) const {
  forward_attention(run);
  const Tensor p = forward_middle(run), a = rows_of(run, run.scratch[acted], inner());
  run.ops.activation(config_.activation, p, a);
  const Tensor from_mlp = joined_product(run, a, down_);
  apply_dropout(run, config_, 2 * layer_ + 2, from_mlp);
  run.ops.add(own_hidden(run, run.saved[middle]), from_mlp, own_hidden(run, y));
}

void Layer::recompute(const BlockRun& run) const {
  if (recompute_ == Recompute::full) {
    forward_attention(run);
    forward_middle(run);
  } else if (recompute_ == Recompute::selective) {
    // Without head norms the saved qkv is rotated already.
    attend(run, config_.qk_norm ? attention_input(run, run.scratch[ready])
                                : rows_of(run, run.saved[qkv], qkv_width()));
  }
}

std::unique_ptr<Block> make_layer(const ModelConfig& config, int64_t layer, const ModelPart& part,
                                  Recompute recompute) {
  return std::make_unique<Layer>(config, layer, part, recompute);
}

}  // namespace rankine

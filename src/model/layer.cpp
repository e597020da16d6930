#include <algorithm>

#include "model/block.h"
#include "model/layer_parameters.h"

namespace rankine {
namespace {

// x + attention(norm(x)), then + mlp(norm(.)): one transformer layer.
class Layer final : public Block {
 public:
  Layer(const ModelConfig& config, int64_t layer) : config_(config), layer_(layer) {
    const auto groups = joined_groups(layer_parameters(config, layer));
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

  BlockDescription describe(const Ops& ops, MicroShape shape, DType dtype) const override;
  void forward(const BlockRun& run, Tensor y) const override;
  void backward_input(const BlockRun& run, const Tensor& dy, Tensor dx) const override;
  void backward_weight(const BlockRun& run, const Tensor& dy) const override;

 private:
  struct Pair {  // indices of a weight and its bias (or second weight), -1: absent
    int weight = -1, bias = -1;
  };
  enum Saved : size_t { input, qkv, attended, middle, pre, stats1, stats2, lse, head_rstd };
  enum Pending : size_t { act, dpre, dmiddle, dqkv, dropped_mlp, dropped_attention };
  enum ForwardScratch : size_t { normed, acted, branch, ready };
  enum BackwardScratch : size_t { dnormed, dattended, ready_again };

  int64_t pre_width() const {
    return config_.feed_forward * (config_.activation == ActivationKind::swiglu ? 2 : 1);
  }
  int64_t qkv_width() const { return config_.query_width() + 2 * config_.kv_width(); }
  AttentionShape attention_shape(MicroShape shape) const {
    return {shape.batch,      shape.tokens,     config_.heads,
            config_.kv_heads, config_.head_dim, config_.layer_window(layer_)};
  }
  static Tensor at(std::span<const Tensor> tensors, int index) {
    return index < 0 ? Tensor{} : tensors[static_cast<size_t>(index)];
  }
  Tensor hidden(const BlockRun& run, const Tensor& t) const {
    return rows_of(run, t, config_.hidden);
  }

  Tensor attention_input(const BlockRun& run, const Tensor& buffer, int64_t past) const;
  void attend(const BlockRun& run, const Tensor& ready_qkv) const;
  // What a norm's gradient reads beside its weights.
  struct NormUse {
    Pair weights;
    Tensor x, stats, dnorm, residual;
  };
  void norm_grad(const BlockRun& run, const NormUse& use, Tensor dx) const;
  void linear_grads(const BlockRun& run, Pair linear, const Tensor& dy, const Tensor& x) const;
  Tensor dropped(const BlockRun& run, const Tensor& dy, size_t pending, int64_t site) const;

  ModelConfig config_;
  int64_t layer_;
  Pair qkv_, out_, up_, down_, norm1_, norm2_, head_norm_;
};

BlockDescription Layer::describe(const Ops& ops, MicroShape shape, DType dtype) const {
  const ModelConfig& c = config_;
  const int64_t r = shape.rows(), w = qkv_width(), f = c.feed_forward, q = c.query_width();
  const int64_t stats = c.norm == NormKind::layer ? 2 : 1;
  BlockDescription d;
  d.name = fmt::format("layers.{}", layer_);
  d.parameters = layer_parameters(c, layer_);
  d.saved = {{"input", dtype, Shape{r, c.hidden}},
             {"qkv", dtype, Shape{r, w}},
             {"attended", dtype, Shape{r, q}},
             {"middle", dtype, Shape{r, c.hidden}},
             {"pre", dtype, Shape{r, pre_width()}},
             {"stats1", DType::f32, Shape{r, stats}},
             {"stats2", DType::f32, Shape{r, stats}},
             {"lse", DType::f32, Shape{shape.batch, c.heads, shape.tokens}}};
  d.pending = {{"act", dtype, Shape{r, f}},
               {"dpre", dtype, Shape{r, pre_width()}},
               {"dmiddle", dtype, Shape{r, c.hidden}},
               {"dqkv", dtype, Shape{r, w}}};
  if (c.dropout > 0) {
    d.pending.push_back({"dropped_mlp", dtype, Shape{r, c.hidden}});
    d.pending.push_back({"dropped_attention", dtype, Shape{r, c.hidden}});
  }
  d.forward_scratch = {{"normed", dtype, Shape{r, c.hidden}},
                       {"acted", dtype, Shape{r, f}},
                       {"branch", dtype, Shape{r, c.hidden}}};
  d.backward_scratch = {{"dnormed", dtype, Shape{r, c.hidden}}, {"dattended", dtype, Shape{r, q}}};
  if (c.qk_norm) {
    d.saved.push_back({"head_rstd", DType::f32, Shape{r, c.heads + c.kv_heads}});
    d.forward_scratch.push_back({"ready", dtype, Shape{r, w}});
    d.backward_scratch.push_back({"ready", dtype, Shape{r, w}});
  }
  d.workspace = std::max(
      {ops.linear_workspace(r, c.hidden, w, dtype), ops.linear_workspace(r, q, c.hidden, dtype),
       ops.linear_workspace(r, c.hidden, pre_width(), dtype),
       ops.linear_workspace(r, f, c.hidden, dtype), ops.norm_workspace(r, std::max(c.hidden, q)),
       ops.attention_workspace(attention_shape(shape), dtype)});
  const auto rows = static_cast<double>(r);
  d.matmul_flops =
      2 * rows * static_cast<double>(c.hidden * (w + pre_width()) + (q + f) * c.hidden);
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
    const Tensor rstd = rows_of(run, run.saved[head_rstd], config_.heads + config_.kv_heads);
    run.ops.head_norm(shape, static_cast<float>(config_.norm_epsilon), x,
                      at(run.params, head_norm_.weight), at(run.params, head_norm_.bias), ready_qkv,
                      rstd);
    x = ready_qkv;
  }
  if (config_.position == PositionKind::rope)
    run.ops.rope({run.shape.tokens, past, config_.heads + config_.kv_heads, config_.head_dim},
                 run.rope_table, x, false);
  return x;
}

void Layer::attend(const BlockRun& run, const Tensor& ready_qkv) const {
  const AttentionShape shape = attention_shape(run.shape);
  const Tensor out = rows_of(run, run.saved[attended], config_.query_width());
  if (run.cache != nullptr)
    run.ops.attention_cached(shape, ready_qkv, run.cache->past, run.cache->keys, run.cache->values,
                             out);
  else
    run.ops.attention(shape, ready_qkv, out,
                      run.saved[lse].as(Shape{run.shape.batch, config_.heads, run.shape.tokens}));
}

void Layer::forward(const BlockRun& run, Tensor y) const {
  Ops& ops = run.ops;
  const auto epsilon = static_cast<float>(config_.norm_epsilon);
  const int64_t f = config_.feed_forward, past = run.cache != nullptr ? run.cache->past : 0;
  const int64_t stats = config_.norm == NormKind::layer ? 2 : 1;
  const Tensor x = hidden(run, run.saved[input]), x2 = hidden(run, run.saved[middle]);
  const Tensor n = hidden(run, run.scratch[normed]), b = hidden(run, run.scratch[branch]);

  ops.norm(
      {config_.norm, epsilon, x, {}, at(run.params, norm1_.weight), at(run.params, norm1_.bias)},
      {}, n, rows_of(run, run.saved[stats1], stats));
  ops.linear(n, at(run.params, qkv_.weight), at(run.params, qkv_.bias),
             rows_of(run, run.saved[qkv], qkv_width()));
  attend(run, attention_input(run, config_.qk_norm ? run.scratch[ready] : Tensor{}, past));
  ops.linear(rows_of(run, run.saved[attended], config_.query_width()), at(run.params, out_.weight),
             at(run.params, out_.bias), b);
  apply_dropout(run, config_, 2 * layer_ + 1, b);
  ops.norm(
      {config_.norm, epsilon, x, b, at(run.params, norm2_.weight), at(run.params, norm2_.bias)}, x2,
      n, rows_of(run, run.saved[stats2], stats));
  const Tensor p = rows_of(run, run.saved[pre], pre_width());
  ops.linear(n, at(run.params, up_.weight), at(run.params, up_.bias), p);
  const Tensor a = rows_of(run, run.scratch[acted], f);
  ops.activation(config_.activation, p, a);
  ops.linear(a, at(run.params, down_.weight), at(run.params, down_.bias), b);
  apply_dropout(run, config_, 2 * layer_ + 2, b);
  ops.add(x2, b, hidden(run, y));
}

// The gradient that passes a residual branch's dropout.
Tensor Layer::dropped(const BlockRun& run, const Tensor& dy, size_t pending, int64_t site) const {
  if (config_.dropout <= 0) return dy;
  const Tensor out = hidden(run, run.pending[pending]);
  run.ops.cast(dy, out);
  apply_dropout(run, config_, site, out);
  return out;
}

void Layer::norm_grad(const BlockRun& run, const NormUse& use, Tensor dx) const {
  run.ops.norm_grad({config_.norm, use.x, use.stats, at(run.params, use.weights.weight), use.dnorm,
                     use.residual, run.accumulate},
                    dx, at(run.grads, use.weights.weight), at(run.grads, use.weights.bias));
}

void Layer::backward_input(const BlockRun& run, const Tensor& dy_in, Tensor dx) const {
  Ops& ops = run.ops;
  const int64_t q = config_.query_width(), stats = config_.norm == NormKind::layer ? 2 : 1;
  const Tensor dy = hidden(run, dy_in), dn = hidden(run, run.scratch[dnormed]);
  const Tensor da = rows_of(run, run.pending[act], config_.feed_forward);
  const Tensor dp = rows_of(run, run.pending[dpre], pre_width());
  const Tensor dm = hidden(run, run.pending[dmiddle]);
  const Tensor dq = rows_of(run, run.pending[dqkv], qkv_width());

  ops.linear_input_grad(dropped(run, dy, dropped_mlp, 2 * layer_ + 2), at(run.params, down_.weight),
                        da);
  ops.activation_grad(config_.activation, rows_of(run, run.saved[pre], pre_width()), da, dp);
  ops.linear_input_grad(dp, at(run.params, up_.weight), dn);
  norm_grad(
      run, {norm2_, hidden(run, run.saved[middle]), rows_of(run, run.saved[stats2], stats), dn, dy},
      dm);

  const Tensor dattn = rows_of(run, run.scratch[dattended], q);
  ops.linear_input_grad(dropped(run, dm, dropped_attention, 2 * layer_ + 1),
                        at(run.params, out_.weight), dattn);
  const Tensor raw = rows_of(run, run.saved[qkv], qkv_width());
  const Tensor read = config_.qk_norm ? attention_input(run, run.scratch[ready_again], 0) : raw;
  const AttentionShape shape = attention_shape(run.shape);
  ops.attention_grad(shape, read, rows_of(run, run.saved[attended], q), dattn,
                     run.saved[lse].as(Shape{run.shape.batch, config_.heads, run.shape.tokens}),
                     dq);
  if (config_.position == PositionKind::rope)
    ops.rope({run.shape.tokens, 0, config_.heads + config_.kv_heads, config_.head_dim},
             run.rope_table, dq, true);
  if (config_.qk_norm)
    ops.head_norm_grad(
        shape, raw, rows_of(run, run.saved[head_rstd], config_.heads + config_.kv_heads),
        at(run.params, head_norm_.weight), at(run.params, head_norm_.bias), dq,
        at(run.grads, head_norm_.weight), at(run.grads, head_norm_.bias), run.accumulate);
  ops.linear_input_grad(dq, at(run.params, qkv_.weight), dn);
  norm_grad(run,
            {norm1_, hidden(run, run.saved[input]), rows_of(run, run.saved[stats1], stats), dn, dm},
            hidden(run, dx));
}

void Layer::linear_grads(const BlockRun& run, Pair linear, const Tensor& dy,
                         const Tensor& x) const {
  run.ops.linear_weight_grad(dy, x, at(run.grads, linear.weight), run.accumulate);
  if (linear.bias >= 0) run.ops.bias_grad(dy, at(run.grads, linear.bias), run.accumulate);
}

void Layer::backward_weight(const BlockRun& run, const Tensor& dy) const {
  Ops& ops = run.ops;
  const int64_t stats = config_.norm == NormKind::layer ? 2 : 1;
  const bool drop = config_.dropout > 0;
  const Tensor n = hidden(run, run.scratch[dnormed]);
  const Tensor dm = hidden(run, run.pending[drop ? dropped_attention : dmiddle]);
  linear_grads(run, down_, hidden(run, drop ? run.pending[dropped_mlp] : dy),
               rows_of(run, run.pending[act], config_.feed_forward));
  ops.norm_again(config_.norm, hidden(run, run.saved[middle]),
                 rows_of(run, run.saved[stats2], stats), at(run.params, norm2_.weight),
                 at(run.params, norm2_.bias), n);
  linear_grads(run, up_, rows_of(run, run.pending[dpre], pre_width()), n);
  linear_grads(run, out_, dm, rows_of(run, run.saved[attended], config_.query_width()));
  ops.norm_again(config_.norm, hidden(run, run.saved[input]),
                 rows_of(run, run.saved[stats1], stats), at(run.params, norm1_.weight),
                 at(run.params, norm1_.bias), n);
  linear_grads(run, qkv_, rows_of(run, run.pending[dqkv], qkv_width()), n);
}

}  // namespace

std::unique_ptr<Block> make_layer(const ModelConfig& config, int64_t layer) {
  return std::make_unique<Layer>(config, layer);
}

}  // namespace rankine

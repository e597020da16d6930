#include <algorithm>

#include "model/block.h"
#include "model/layer_parameters.h"

namespace rankine {
namespace {

// Groups of head_parameters(): untied [matrix, norm weight, norm bias], tied [norm weight, norm
// bias, then the embedding's matrix].
struct Places {
  size_t matrix, norm_weight;
  int norm_bias;
};

Places places(const ModelConfig& config) {
  const bool bias = config.norm == NormKind::layer;
  if (config.tied) return {bias ? size_t{2} : size_t{1}, 0, bias ? 1 : -1};
  return {0, 1, bias ? 2 : -1};
}

Tensor at(std::span<const Tensor> tensors, int index) {
  return index < 0 ? Tensor{} : tensors[static_cast<size_t>(index)];
}

enum Saved : size_t { input, dnormed, stats, losses };
enum Scratch : size_t { normed, chunk };

}  // namespace

Head::Head(const ModelConfig& config) : config_(config) {}

// Small chunks make the matrix's gradient pass over memory more often; 1024 rows cost nothing.
int64_t Head::logit_rows(int64_t rows) {
  return std::min<int64_t>(rows, 1024);
}

BlockDescription Head::describe(const Ops& ops, MicroShape shape, DType dtype) const {
  const int64_t r = shape.rows(), c = config_.hidden, vp = padded_vocabulary(config_.vocabulary);
  BlockDescription d;
  d.name = "head";
  d.parameters = head_parameters(config_);
  if (config_.tied) d.tied = "embedding.tokens.weight";
  d.forward_adds_gradients = !config_.tied;
  d.saved = {{"input", dtype, Shape{r, c}},
             {"dnormed", dtype, Shape{r, c}},
             {"stats", DType::f32, Shape{r, config_.norm == NormKind::layer ? 2 : 1}},
             {"losses", DType::f32, Shape{r}}};
  d.forward_scratch = {{"normed", dtype, Shape{r, c}}, {"logits", dtype, Shape{logit_rows(r), vp}}};
  d.workspace =
      std::max({ops.linear_workspace(logit_rows(r), c, vp, dtype),
                ops.linear_workspace(std::max<int64_t>(1, r % logit_rows(r)), c, vp, dtype),
                ops.norm_workspace(r, c), ops.sum_workspace(r)});
  d.matmul_flops = 2 * static_cast<double>(r) * static_cast<double>(c * vp);
  return d;
}

void Head::norm_inputs(const BlockRun& run) const {
  const Places p = places(config_);
  run.ops.norm({config_.norm,
                static_cast<float>(config_.norm_epsilon),
                rows_of(run, run.saved[input], config_.hidden),
                {},
                run.params[p.norm_weight],
                at(run.params, p.norm_bias)},
               {}, rows_of(run, run.scratch[normed], config_.hidden),
               rows_of(run, run.saved[stats], config_.norm == NormKind::layer ? 2 : 1));
}

void Head::forward(const BlockRun& run, Tensor) const {
  const Places p = places(config_);
  const int64_t r = run.shape.rows(), vp = padded_vocabulary(config_.vocabulary);
  const int64_t most = logit_rows(run.scratch[chunk].shape[0]);
  norm_inputs(run);
  const Tensor x = rows_of(run, run.scratch[normed], config_.hidden);
  const Tensor dx = rows_of(run, run.saved[dnormed], config_.hidden);
  const Tensor matrix = run.params[p.matrix], token_losses = run.saved[losses].range(0, r);
  for (int64_t first = 0; first < r; first += most) {
    const int64_t n = std::min(most, r - first);
    const Tensor part = x.rows(first, n), y = run.scratch[chunk].as(Shape{n, vp});
    run.ops.linear(part, matrix, {}, y);
    run.ops.cross_entropy({config_.vocabulary, run.gradient_scale, run.training}, y,
                          run.targets.range(first, n), token_losses.range(first, n));
    if (!run.training) continue;
    run.ops.linear_input_grad(y, matrix, dx.rows(first, n));
    run.ops.linear_weight_grad(y, part, run.grads[p.matrix], run.accumulate || first > 0);
  }
  run.ops.sum(token_losses, run.loss, true);
}

void Head::backward_input(const BlockRun& run, const Tensor&, Tensor dx) const {
  const Places p = places(config_);
  const int64_t c = config_.hidden;
  run.ops.norm_grad({config_.norm,
                     rows_of(run, run.saved[input], c),
                     rows_of(run, run.saved[stats], config_.norm == NormKind::layer ? 2 : 1),
                     run.params[p.norm_weight],
                     rows_of(run, run.saved[dnormed], c),
                     {},
                     run.accumulate},
                    rows_of(run, dx, c), run.grads[p.norm_weight], at(run.grads, p.norm_bias));
}

Tensor Head::logits(const BlockRun& run, int64_t first, int64_t count) const {
  expect(count <= run.scratch[chunk].shape[0], "logits fit their chunk");
  norm_inputs(run);
  const Tensor y = run.scratch[chunk].as(Shape{count, padded_vocabulary(config_.vocabulary)});
  run.ops.linear(rows_of(run, run.scratch[normed], config_.hidden).rows(first, count),
                 run.params[places(config_).matrix], {}, y);
  return y;
}

}  // namespace rankine

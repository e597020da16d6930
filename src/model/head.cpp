#include <algorithm>

#include "model/block.h"
#include "model/layer_parameters.h"

namespace rankine {
namespace {

// Groups of head_parameters(): with a matrix of its own [matrix, norm weight, norm bias], otherwise
// [norm weight, norm bias, then the embedding's matrix].
struct Places {
  size_t matrix, norm_weight;
  int norm_bias;
};

Places places(const ModelConfig& config, bool copy) {
  const bool bias = config.norm == NormKind::layer;
  if (config.tied && !copy) return {bias ? size_t{2} : size_t{1}, 0, bias ? 1 : -1};
  return {0, 1, bias ? 2 : -1};
}

Tensor at(std::span<const Tensor> tensors, int index) {
  return index < 0 ? Tensor{} : tensors[static_cast<size_t>(index)];
}

constexpr size_t input = 0;  // of saved
// Of either scratch; the backward's has dnormed too.
enum Scratch : size_t { normed, chunk, stats, losses_of_rows, own_part, all_parts, dnormed };

}  // namespace

struct Head::Gradients {
  Tensor matrix, normed;
};

Head::Head(const ModelConfig& config, const ModelPart& part)
    : config_(config), split_(part.split), copy_(config.tied && part.tied_copy) {}

// Small chunks make the matrix's gradient pass over memory more often; 1024 rows cost nothing.
int64_t Head::logit_rows(int64_t rows) {
  return std::min<int64_t>(rows, 1024);
}

BlockDescription Head::describe(const Ops& ops, MicroShape shape, DType dtype) const {
  const int64_t r = shape.rows(), own = split_.rows(r), c = config_.hidden;
  const int64_t vp = split_.stored_vocabulary(config_), n = logit_rows(r);
  BlockDescription d;
  d.name = "head";
  d.parameters = head_parameters(config_, split_, copy_);
  if (config_.tied && !copy_) d.tied = "embedding.tokens.weight";
  d.forward_reads_parameters = false;
  d.splits_backward = false;
  d.saved = {{"input", dtype, Shape{own, c}}};
  d.output = {"output", dtype, Shape{0, c}};
  const int64_t parts = split_.ranks > 1 ? split_.ranks : 0;
  d.forward_scratch = {{"normed", dtype, Shape{r, c}},
                       {"logits", dtype, Shape{n, vp}},
                       {"stats", DType::f32, Shape{own, config_.norm == NormKind::layer ? 2 : 1}},
                       {"losses", DType::f32, Shape{r}},
                       {"vocabulary part", DType::f64, Shape{parts > 0 ? n : 0, 3}},
                       {"vocabulary parts", DType::f64, Shape{parts * n, 3}}};
  d.backward_scratch = d.forward_scratch;
  d.backward_scratch.push_back({"dnormed", dtype, Shape{r, c}});
  d.workspace = std::max({ops.linear_workspace(n, c, vp, dtype),
                          ops.linear_workspace(std::max<int64_t>(1, r % n), c, vp, dtype),
                          ops.norm_workspace(own, c), ops.sum_workspace(r)});
  d.matmul_flops = 2 * static_cast<double>(r) * static_cast<double>(c * vp);
  return d;
}

// All rows, normed.
Tensor Head::norm_inputs(const BlockRun& run) const {
  const Places p = places(config_, copy_);
  const Tensor all = rows_of(run, run.scratch[normed], config_.hidden);
  run.ops.norm({config_.norm,
                static_cast<float>(config_.norm_epsilon),
                own_rows_of(run, run.saved[input], config_.hidden),
                {},
                run.params[p.norm_weight],
                at(run.params, p.norm_bias)},
               {}, run.region.own(all),
               own_rows_of(run, run.scratch[stats], config_.norm == NormKind::layer ? 2 : 1));
  run.region.enter(all);
  return all;
}

// Adds the summed loss; with `gradients` also the matrix's gradient, and that of the normed rows.
void Head::losses(const BlockRun& run, const Gradients* gradients) const {
  const int64_t r = run.shape.rows(), vp = split_.stored_vocabulary(config_);
  const int64_t most = logit_rows(run.scratch[chunk].shape[0]);
  const Tensor x = norm_inputs(run), matrix = run.params[places(config_, copy_).matrix];
  const Tensor of_rows = token_losses(run);
  const CrossEntropy ce{config_.vocabulary, run.gradient_scale, gradients != nullptr,
                        run.step_state};
  const TensorSplit::Range held = split_.vocabulary(config_);
  for (int64_t first = 0; first < r; first += most) {
    const int64_t n = std::min(most, r - first);
    const Tensor rows = x.rows(first, n), y = run.scratch[chunk].as(Shape{n, vp});
    const Tensor targets = run.targets.range(first, n), sums = of_rows.range(first, n);
    run.ops.linear(rows, matrix, {}, y);
    if (split_.ranks == 1) {
      run.ops.cross_entropy(ce, y, targets, sums);
    } else {
      const VocabularyPart part{split_.rank * vp, held.count()};
      const Tensor own = run.scratch[own_part].as(Shape{n, 3});
      const Tensor all = run.scratch[all_parts].as(Shape{split_.ranks * n, 3});
      run.ops.cross_entropy_statistics(part, y, targets, own);
      run.region.collect(own, all);
      run.ops.cross_entropy_joined(ce, part, y, targets, all, sums);
    }
    if (gradients == nullptr) continue;
    run.ops.linear_input_grad(y, matrix, gradients->normed.rows(first, n));
    run.ops.linear_weight_grad(y, rows, gradients->matrix, run.accumulate || first > 0);
  }
  run.ops.sum(of_rows, run.loss, true);
}

void Head::forward(const BlockRun& run, Tensor) const {
  if (!run.training) losses(run, nullptr);
}

void Head::backward_input(const BlockRun& run, const Tensor&, Tensor dx) const {
  const Places p = places(config_, copy_);
  const int64_t c = config_.hidden;
  const Tensor all = rows_of(run, run.scratch[dnormed], c);
  const Gradients gradients{run.grads[p.matrix], all};
  losses(run, &gradients);
  run.region.leave(all).lead(run.ops.queue());
  run.ops.norm_grad({config_.norm,
                     own_rows_of(run, run.saved[input], c),
                     own_rows_of(run, run.scratch[stats], config_.norm == NormKind::layer ? 2 : 1),
                     run.params[p.norm_weight],
                     run.region.own(all),
                     {},
                     run.accumulate},
                    own_rows_of(run, dx, c), run.grads[p.norm_weight], at(run.grads, p.norm_bias));
}

Tensor Head::token_losses(const BlockRun& run) const {
  return run.scratch[losses_of_rows].range(0, run.shape.rows());
}

Tensor Head::logits(const BlockRun& run, int64_t first, int64_t count) const {
  expect(count <= run.scratch[chunk].shape[0] && split_.ranks == 1,
         "logits fit their chunk, on one rank");
  const Tensor y = run.scratch[chunk].as(Shape{count, split_.stored_vocabulary(config_)});
  const Tensor rows = norm_inputs(run).rows(first, count);
  const Tensor& matrix = run.params[places(config_, copy_).matrix];
  if (run.decodes() || count == 1)
    run.ops.linear_few(rows, matrix, {}, y);
  else
    run.ops.linear(rows, matrix, {}, y);
  return y;
}

}  // namespace rankine

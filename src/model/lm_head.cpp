#include "model/lm_head.h"

#include <algorithm>

namespace rankine {
namespace {

constexpr size_t input = 0;  // of saved
// Of either scratch; the backward's has dnormed too.
enum Scratch : size_t { normed, chunk, stats, losses_of_rows, own_part, all_parts, dnormed };

}  // namespace

struct LmHead::Gradients {
  Tensor matrix, normed;
};

LmHead::LmHead(const ModelConfig& config, const ModelPart& part)
    : config_(config),
      split_(part.split),
      parameters_(head_parameters(config, part.split, config.tied && part.tied_copy)) {}

// Small chunks make the matrix's gradient pass over memory more often; 1024 rows cost nothing.
int64_t LmHead::logit_rows(int64_t rows) {
  return std::min<int64_t>(rows, 1024);
}

BlockDescription LmHead::describe(const Ops& ops, MicroShape shape, DType dtype) const {
  const int64_t r = shape.rows(), own = split_.rows(r), c = config_.hidden;
  const int64_t vp = split_.stored_vocabulary(config_), n = logit_rows(r);
  BlockDescription d;
  d.name = "head";
  d.parameters = parameters_.specs;
  if (parameters_.tied) d.tied = "embedding.tokens.weight";
  d.forward_reads_parameters = false;
  d.splits_backward = false;
  d.saved = {{"input", dtype, Shape{own, c}}};
  d.output = {"output", dtype, Shape{0, c}};
  const int64_t parts = split_.ranks > 1 ? split_.ranks : 0;
  d.forward_scratch = {{"normed", dtype, Shape{r, c}},
                       {"logits", dtype, Shape{n, vp}},
                       {"stats", DType::f32, Shape{own, stats_width(config_.norm)}},
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

Tensor LmHead::stats_of(const BlockRun& run) const {
  return own_rows_of(run, run.scratch[stats], stats_width(config_.norm));
}

// All rows, normed.
Tensor LmHead::norm_inputs(const BlockRun& run) const {
  const Tensor all = rows_of(run, run.scratch[normed], config_.hidden);
  run.ops.norm({config_.norm,
                static_cast<float>(config_.norm_epsilon),
                own_rows_of(run, run.saved[input], config_.hidden),
                {},
                group_of(run.params, parameters_.norm.weight),
                group_of(run.params, parameters_.norm.bias)},
               {}, run.region.own(all), stats_of(run));
  run.region.enter(all);
  return all;
}

// Adds the summed loss; with `gradients` also the matrix's gradient, and that of the normed rows.
void LmHead::losses(const BlockRun& run, const Gradients* gradients) const {
  const int64_t r = run.shape.rows(), vp = split_.stored_vocabulary(config_);
  const int64_t most = logit_rows(run.scratch[chunk].shape[0]);
  const Tensor x = norm_inputs(run), matrix = group_of(run.params, parameters_.matrix);
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

void LmHead::forward(const BlockRun& run, Tensor) const {
  if (!run.training) losses(run, nullptr);
}

void LmHead::backward_input(const BlockRun& run, const Tensor&, Tensor dx) const {
  const int64_t c = config_.hidden;
  const Tensor all = rows_of(run, run.scratch[dnormed], c);
  const Gradients gradients{group_of(run.grads, parameters_.matrix), all};
  losses(run, &gradients);
  run.region.leave(all).lead(run.ops.queue());
  run.ops.norm_grad({config_.norm,
                     own_rows_of(run, run.saved[input], c),
                     stats_of(run),
                     group_of(run.params, parameters_.norm.weight),
                     run.region.own(all),
                     {},
                     run.accumulate},
                    own_rows_of(run, dx, c), group_of(run.grads, parameters_.norm.weight),
                    group_of(run.grads, parameters_.norm.bias));
}

Tensor LmHead::token_losses(const BlockRun& run) const {
  return run.scratch[losses_of_rows].range(0, run.shape.rows());
}

Tensor LmHead::logits(const BlockRun& run, int64_t first, int64_t count) const {
  expect(count <= run.scratch[chunk].shape[0] && split_.ranks == 1,
         "logits fit their chunk, on one rank");
  const Tensor y = run.scratch[chunk].as(Shape{count, split_.stored_vocabulary(config_)});
  const Tensor rows = norm_inputs(run).rows(first, count);
  const Tensor matrix = group_of(run.params, parameters_.matrix);
  if (run.decodes() || count == 1)
    run.ops.linear_few(rows, matrix, {}, y);
  else
    run.ops.linear(rows, matrix, {}, y);
  return y;
}

}  // namespace rankine

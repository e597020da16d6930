#include <algorithm>
#include <bit>
#include <limits>

#include "ops/cpu/checks.h"
#include "ops/cpu/cpu_ops.h"

namespace rankine {
namespace {

// The bits of `value` as an element of this type.
uint64_t pattern_of(float value, DType dtype) {
  switch (dtype) {
    case DType::f64:
      return std::bit_cast<uint64_t>(static_cast<double>(value));
    case DType::f32:
      return std::bit_cast<uint32_t>(value);
    case DType::bf16:
      return from_float<Bf16>(value).bits;
    case DType::f16:
      return from_float<F16>(value).bits;
    default:
      fail(ErrorKind::internal, "no fill for elements of type {}", dtype_name(dtype));
  }
}

void check_indices(const Tensor& ids, int64_t rows, int64_t end, int32_t lowest) {
  expect(holds(ids, DType::i32, rows), "indices i32, one for each row");
  const int32_t* at = data_of<int32_t>(ids);
  for (int64_t r = 0; r < rows; ++r)
    if (at[r] < lowest || at[r] >= end)
      fail(ErrorKind::internal, "row {} has index {}, outside [{}, {})", r, at[r], lowest, end);
}

}  // namespace

void CpuOps::cast(const Tensor& from, Tensor to) {
  prepare();
  expect(from.elements() == to.elements(), "a cast between tensors of equal size");
  kernels_.casts.cast[storage_of(from.dtype)][storage_of(to.dtype)](
      data_of<void>(from), data_of<void>(to), from.elements(), threads_);
}

void CpuOps::fill(Tensor x, float value) {
  prepare();
  kernels_.elements.fill(data_of<void>(x), pattern_of(value, x.dtype),
                         static_cast<int>(dtype_bytes(x.dtype)), x.elements(), threads_);
}

void CpuOps::fill_normal(Tensor x, RandomKey key, uint64_t first_index, float std) {
  prepare();
  expect(x.dtype == DType::f32, "random numbers in f32");
  kernels_.random.fill_normal({.x = data_of<float>(x),
                               .count = x.elements(),
                               .key_low = key.low,
                               .key_high = key.high,
                               .first_index = first_index,
                               .deviation = std,
                               .threads = threads_});
}

void CpuOps::bias_grad(const Tensor& dy, Tensor db, bool accumulate) {
  prepare();
  const int64_t rows = rows_of(dy), width = width_of(dy);
  expect(holds(db, DType::f32, width), "a bias gradient f32 [width]");
  kernels_.elements.bias_grad[storage_of(dy.dtype)](
      {.dy = data_of<void>(dy),
       .rows = rows,
       .width = width,
       .db = data_of<float>(db),
       .accumulate = accumulate,
       .workspace = workspace(kernels_.elements.bias_grad_workspace(rows, width)),
       .threads = threads_});
}

void CpuOps::activation(ActivationKind kind, const Tensor& pre, Tensor y) {
  prepare();
  const bool gated = kind == ActivationKind::swiglu;
  const int64_t rows = rows_of(y), width = width_of(y);
  expect(holds(pre, y.dtype, rows * width * (gated ? 2 : 1)),
         "pre-activations [rows, width], of swiglu [rows, 2 width]");
  const ActivationCall call{rows, width, data_of<void>(pre), data_of<void>(y), nullptr, threads_};
  const int storage = storage_of(y.dtype);
  switch (kind) {
    case ActivationKind::gelu_exact:
      return kernels_.activations.gelu_exact[storage](call);
    case ActivationKind::gelu_tanh:
      return kernels_.activations.gelu_tanh[storage](call);
    case ActivationKind::swiglu:
      return kernels_.activations.swiglu[storage](call);
  }
}

void CpuOps::activation_grad(ActivationKind kind, const Tensor& pre, Tensor dy_to_y, Tensor dpre) {
  prepare();
  const bool gated = kind == ActivationKind::swiglu;
  const int64_t rows = rows_of(dy_to_y), width = width_of(dy_to_y);
  const int64_t count = rows * width * (gated ? 2 : 1);
  expect(holds(pre, dy_to_y.dtype, count) && holds(dpre, dy_to_y.dtype, count),
         "pre-activations and their gradient [rows, width], of swiglu [rows, 2 width]");
  const ActivationCall call{
      rows, width, data_of<void>(pre), data_of<void>(dy_to_y), data_of<void>(dpre), threads_};
  const int storage = storage_of(dy_to_y.dtype);
  switch (kind) {
    case ActivationKind::gelu_exact:
      return kernels_.activations.gelu_exact_grad[storage](call);
    case ActivationKind::gelu_tanh:
      return kernels_.activations.gelu_tanh_grad[storage](call);
    case ActivationKind::swiglu:
      return kernels_.activations.swiglu_grad[storage](call);
  }
}

void CpuOps::add(const Tensor& a, const Tensor& b, Tensor y) {
  prepare();
  expect(holds(a, y.dtype, y.elements()) && holds(b, y.dtype, y.elements()),
         "a sum of tensors of one type and size");
  kernels_.elements.add[storage_of(y.dtype)](data_of<void>(a), data_of<void>(b), data_of<void>(y),
                                             y.elements(), threads_);
}

void CpuOps::dropout(Tensor x, const Dropout& dropout) {
  prepare();
  expect(0 <= dropout.probability && dropout.probability < 1, "a dropout probability in [0, 1)");
  expect(dropout.first_index % 4 == 0, "a first index that is a multiple of 4");
  if (dropout.probability == 0) return;
  kernels_.elements.dropout[storage_of(x.dtype)]({.x = data_of<void>(x),
                                                  .count = x.elements(),
                                                  .probability = dropout.probability,
                                                  .key_low = dropout.key.low,
                                                  .key_high = dropout.key.high,
                                                  .stream = dropout.stream,
                                                  .first_index = dropout.first_index,
                                                  .threads = threads_});
}

void CpuOps::rope(const RopeShape& shape, const Tensor& table, Tensor qkv, bool inverse) {
  prepare();
  const int64_t dim = shape.head_dim;
  expect(dim > 0 && dim % 2 == 0 && shape.rotated_heads * dim <= width_of(qkv),
         "an even head_dim and rows that hold the rotated heads");
  expect(table.dtype == DType::f32 && shape.tokens > 0 && shape.first_position >= 0 &&
             (shape.first_position + shape.tokens) * dim <= table.elements(),
         "a table f32 [positions, head_dim] of all positions");
  kernels_.ropes.rope[storage_of(qkv.dtype)]({.rows = rows_of(qkv),
                                              .row_width = width_of(qkv),
                                              .tokens = shape.tokens,
                                              .first_position = shape.first_position,
                                              .rotated_heads = shape.rotated_heads,
                                              .head_dim = dim,
                                              .table = data_of<float>(table),
                                              .qkv = data_of<void>(qkv),
                                              .inverse = inverse,
                                              .threads = threads_});
}

void CpuOps::embed(const Embedding& e, const Tensor& token_table, const Tensor& position_table,
                   Tensor y) {
  prepare();
  const int64_t rows = rows_of(y), width = width_of(y);
  check_indices(e.ids, rows, e.vocabulary > 0 ? e.vocabulary : rows_of(token_table), 0);
  expect(token_table.dtype == y.dtype && width_of(token_table) == width,
         "a token table [vocabulary, width] of the output's type");
  expect(position_table.empty() ||
             (position_table.dtype == y.dtype && width_of(position_table) == width &&
              e.tokens > 0 && e.first_position + e.tokens <= rows_of(position_table)),
         "a position table [positions, width] of the output's type with all positions");
  kernels_.embeds.embed[storage_of(y.dtype)]({.ids = data_of<int32_t>(e.ids),
                                              .rows = rows,
                                              .width = width,
                                              .tokens = e.tokens,
                                              .first_position = e.first_position,
                                              .first_token = e.first_token,
                                              .table_rows = rows_of(token_table),
                                              .token_table = data_of<void>(token_table),
                                              .position_table = data_of<void>(position_table),
                                              .y = data_of<void>(y),
                                              .threads = threads_});
}

void CpuOps::embed_grad(const Embedding& e, const Tensor& dy, Tensor dtoken_table,
                        bool accumulate_tokens, Tensor dposition_table, bool accumulate_positions) {
  prepare();
  const int64_t rows = rows_of(dy), width = width_of(dy);
  check_indices(e.ids, rows, e.vocabulary > 0 ? e.vocabulary : rows_of(dtoken_table), 0);
  expect(dtoken_table.dtype == DType::f32 && width_of(dtoken_table) == width,
         "a token gradient f32 [vocabulary, width]");
  const int64_t positions = dposition_table.empty() ? 0 : rows_of(dposition_table);
  expect(dposition_table.empty() ||
             (dposition_table.dtype == DType::f32 && width_of(dposition_table) == width &&
              e.tokens > 0 && e.first_position + e.tokens <= positions),
         "a position gradient f32 [positions, width] with all positions");
  kernels_.embeds.embed_grad[storage_of(dy.dtype)](
      {.ids = data_of<int32_t>(e.ids),
       .rows = rows,
       .width = width,
       .tokens = e.tokens,
       .first_position = e.first_position,
       .first_token = e.first_token,
       .dy = data_of<void>(dy),
       .dtoken_table = data_of<float>(dtoken_table),
       .dposition_table = data_of<float>(dposition_table),
       .vocabulary = rows_of(dtoken_table),
       .positions = positions,
       .accumulate_tokens = accumulate_tokens,
       .accumulate_positions = accumulate_positions,
       .threads = threads_});
}

namespace {

StepState* state_of(const Tensor& state) {
  expect(holds(state, DType::u8, sizeof(StepState)), "the state of a step");
  return data_of<StepState>(state);
}

float gradient_scale_of(const CrossEntropy& ce) {
  if (ce.state.empty()) return ce.gradient_scale;
  return ce.gradient_scale * static_cast<float>(state_of(ce.state)->loss_scale.scale);
}

}  // namespace

void CpuOps::decide(const StepRules& rules, const Tensor& exact, Tensor state) {
  expect(holds(exact, DType::i64, ExactSum::size), "an exact sum");
  ExactSum squares;
  std::copy_n(data_of<int64_t>(exact), ExactSum::size, squares.parts().data());
  rankine::decide(rules, squares, *state_of(state));
}

void CpuOps::cross_entropy(const CrossEntropy& ce, Tensor logits, const Tensor& targets,
                           Tensor losses) {
  prepare();
  const int64_t rows = rows_of(logits), padded = width_of(logits);
  expect(0 < ce.vocabulary && ce.vocabulary <= padded, "a vocabulary within the logits' width");
  check_indices(targets, rows, ce.vocabulary, std::numeric_limits<int32_t>::min());
  expect(holds(losses, DType::f32, rows), "losses f32 [rows]");
  kernels_.cross_entropies.cross_entropy[storage_of(logits.dtype)](
      {.logits = data_of<void>(logits),
       .targets = data_of<int32_t>(targets),
       .losses = data_of<float>(losses),
       .rows = rows,
       .vocabulary = ce.vocabulary,
       .padded_vocabulary = padded,
       .gradient_scale = gradient_scale_of(ce),
       .gradient = ce.gradient,
       .threads = threads_});
}

namespace {

// What both halves of a split cross-entropy say of their columns; statistics f64 [parts, rows, 3].
CrossEntropyPartCall call_of(const VocabularyPart& part, const Tensor& logits,
                             const Tensor& targets, const Tensor& statistics, int threads) {
  const int64_t rows = rows_of(logits), padded = width_of(logits);
  expect(0 <= part.columns && part.columns <= padded, "a vocabulary part within the logits' width");
  expect(rows > 0 && statistics.dtype == DType::f64 && statistics.elements() > 0 &&
             statistics.elements() % (3 * rows) == 0,
         "statistics f64 [parts, rows, 3]");
  return {.logits = data_of<void>(logits),
          .targets = data_of<int32_t>(targets),
          .statistics = data_of<double>(statistics),
          .rows = rows,
          .first = part.first,
          .columns = part.columns,
          .padded_columns = padded,
          .parts = statistics.elements() / (3 * rows),
          .losses = nullptr,
          .gradient_scale = 0,
          .gradient = false,
          .threads = threads};
}

}  // namespace

void CpuOps::cross_entropy_statistics(const VocabularyPart& part, const Tensor& logits,
                                      const Tensor& targets, Tensor statistics) {
  prepare();
  const CrossEntropyPartCall call = call_of(part, logits, targets, statistics, threads_);
  check_indices(targets, call.rows, std::numeric_limits<int32_t>::max(),
                std::numeric_limits<int32_t>::min());
  expect(call.parts == 1, "statistics f64 [rows, 3]");
  kernels_.cross_entropies.statistics[storage_of(logits.dtype)](call);
}

void CpuOps::cross_entropy_joined(const CrossEntropy& ce, const VocabularyPart& part, Tensor logits,
                                  const Tensor& targets, const Tensor& statistics, Tensor losses) {
  prepare();
  CrossEntropyPartCall call = call_of(part, logits, targets, statistics, threads_);
  check_indices(targets, call.rows, ce.vocabulary, std::numeric_limits<int32_t>::min());
  expect(holds(losses, DType::f32, call.rows), "losses f32 [rows]");
  call.losses = data_of<float>(losses);
  call.gradient_scale = gradient_scale_of(ce);
  call.gradient = ce.gradient;
  kernels_.cross_entropies.joined[storage_of(logits.dtype)](call);
}

void CpuOps::choose_tokens(const TokenChoice& choice, const Tensor& logits,
                           std::span<const double> at, std::span<int32_t> tokens) {
  prepare();
  const int64_t rows = rows_of(logits), vocabulary = choice.vocabulary;
  expect(0 < vocabulary && vocabulary <= width_of(logits), "logits of the whole vocabulary");
  expect(static_cast<int64_t>(at.size()) == rows && at.size() == tokens.size(),
         "a place and a token for each row");
  expect(choice.temperature >= 0 && choice.top_k >= 0 && choice.top_p > 0,
         "a temperature and top-k of at least 0, a top-p above it");
  for (const int32_t id : choice.forbidden)
    expect(0 <= id && id < vocabulary, "forbidden tokens of the vocabulary");
  kernels_.choices.choose[storage_of(logits.dtype)](
      {.rows = rows,
       .vocabulary = vocabulary,
       .row_stride = width_of(logits),
       .logits = data_of<void>(logits),
       .forbidden = choice.forbidden.data(),
       .forbidden_count = static_cast<int64_t>(choice.forbidden.size()),
       .temperature = choice.temperature,
       .top_k = choice.top_k,
       .top_p = choice.top_p,
       .at = at.data(),
       .tokens = tokens.data(),
       .workspace = workspace(choose_workspace(rows, vocabulary)),
       .threads = threads_,
       .team = team()});
}

size_t CpuOps::choose_workspace(int64_t rows, int64_t vocabulary) const {
  ChooseCall call{};
  call.rows = rows;
  call.vocabulary = vocabulary;
  call.threads = threads_;
  return kernels_.choices.workspace(call);
}

void CpuOps::sum(const Tensor& x, Tensor total, bool accumulate) {
  prepare();
  expect(x.dtype == DType::f32 && holds(total, DType::f64, 1), "an f64 sum of an f32 tensor");
  kernels_.sums.sum(data_of<float>(x), x.elements(), data_of<double>(total), accumulate,
                    workspace(sum_workspace(x.elements())), threads_);
}

void CpuOps::sum_squares(const Tensor& x, Tensor exact) {
  expect(x.dtype == DType::f32 && exact.dtype == DType::i64 && exact.elements() == ExactSum::size,
         "squares of f32 into an exact sum");
  kernels_.sums.sum_squares(data_of<float>(x), x.elements(), data_of<int64_t>(exact), threads_);
}

size_t CpuOps::sum_workspace(int64_t elements) const {
  return kernels_.sums.workspace(elements);
}

void CpuOps::adamw(const AdamWStep& step, Tensor weights, const Tensor& grads, Tensor momentum,
                   Tensor variance, Tensor compute) {
  prepare();
  const int64_t count = weights.elements();
  expect(weights.dtype == DType::f32 && grads.dtype == DType::f32 && grads.elements() == count &&
             momentum.dtype == DType::f32 && momentum.elements() == count &&
             variance.dtype == DType::f32 && variance.elements() == count,
         "weights, gradients and moments f32 of one size");
  expect(compute.empty() || (compute.elements() == count && compute.dtype != DType::f32),
         "a rounded copy of the weights in bf16 or f16");
  const StepState* const state = step.state.empty() ? nullptr : state_of(step.state);
  if (state != nullptr && state->skipped != 0) return;
  const int storage = compute.empty() ? storage_f32 : storage_of(compute.dtype);
  kernels_.optimizers.adamw[storage](
      {.lr = step.lr,
       .beta1 = step.beta1,
       .beta2 = step.beta2,
       .epsilon = step.epsilon,
       .weight_decay = step.weight_decay,
       .bias_correction1 = state ? state->bias_correction1 : step.bias_correction1,
       .bias_correction2 = state ? state->bias_correction2 : step.bias_correction2,
       .gradient_scale = state ? state->gradient_scale : step.gradient_scale,
       .count = count,
       .weights = data_of<float>(weights),
       .grads = data_of<float>(grads),
       .momentum = data_of<float>(momentum),
       .variance = data_of<float>(variance),
       .compute = data_of<void>(compute),
       .threads = threads_});
}

}  // namespace rankine

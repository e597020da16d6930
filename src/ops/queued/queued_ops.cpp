#include "ops/queued/queued_ops.h"

#include <cstring>
#include <vector>

namespace rankine {

QueuedOps::QueuedOps(std::unique_ptr<Ops> device_ops, std::unique_ptr<Ops> host_ops, uint64_t seed)
    : device_(seed),
      ops_(std::move(device_ops)),
      host_(std::move(host_ops)),
      queue_(seed, [this](void* memory) { return device_.reach(memory); }) {}

QueuedOps::~QueuedOps() = default;

std::string QueuedOps::description() const {
  return "simulated device over " + ops_->description();
}

Tensor QueuedOps::near(const Tensor& x) const {
  if (x.empty()) return x;
  expect(x.device == DeviceKind::queued, "an operation's tensors lie on its device");
  return {device_.reach(x.data), x.dtype, x.shape};
}

void QueuedOps::synchronize() {
  queue_.mark().wait();
}

// The host's memory is copied at once, since it may change.
void QueuedOps::upload(const void* host, Tensor to) {
  const auto* const begin = static_cast<const std::byte*>(host);
  put([bytes = std::vector<std::byte>(begin, begin + to.bytes()), at = device_.reach(to.data)] {
    std::memcpy(at, bytes.data(), bytes.size());
  });
  if (to.device != DeviceKind::queued) synchronize();
}

void QueuedOps::download(const Tensor& from, void* host) {
  queue_.copy(host, from.data, static_cast<uint64_t>(from.bytes()));
  synchronize();
}

void QueuedOps::read_later(const Tensor& from, void* host) {
  queue_.copy(host, from.data, static_cast<uint64_t>(from.bytes()));
}

void QueuedOps::attention_cached(const AttentionShape& shape, const Tensor& qkv,
                                 std::span<const KvCache> caches, Tensor out) {
  std::vector<KvCache> seen(caches.begin(), caches.end());
  for (KvCache& cache : seen) cache = {cache.past, near(cache.keys), near(cache.values)};
  AttentionShape at = shape;
  at.first_keys = near(shape.first_keys);
  put([this, at, qkv = near(qkv), seen, out = near(out)] {
    ops_->attention_cached(at, qkv, seen, out);
  });
}

// Its answer is read at once.
void QueuedOps::choose_tokens(const TokenChoice& choice, const Tensor& logits,
                              std::span<const double> at, std::span<int32_t> tokens) {
  put([this, choice, logits = near(logits), at, tokens] {
    ops_->choose_tokens(choice, logits, at, tokens);
  });
  synchronize();
}

void QueuedOps::set_workspace(Tensor bytes) {
  put([this, bytes = near(bytes)] { ops_->set_workspace(bytes); });
}

void QueuedOps::cast(const Tensor& from, Tensor to) {
  put([this, from = near(from), to = near(to)] { ops_->cast(from, to); });
}

void QueuedOps::fill(Tensor x, float value) {
  put([this, x = near(x), value] { ops_->fill(x, value); });
}

void QueuedOps::fill_normal(Tensor x, RandomKey key, uint64_t first_index, float std) {
  put([this, x = near(x), key, first_index, std] { ops_->fill_normal(x, key, first_index, std); });
}

void QueuedOps::linear(const Tensor& x, const Tensor& w, const Tensor& bias, Tensor y) {
  put([this, x = near(x), w = near(w), bias = near(bias), y = near(y)] {
    ops_->linear(x, w, bias, y);
  });
}

void QueuedOps::linear_few(const Tensor& x, const Tensor& w, const Tensor& bias, Tensor y) {
  put([this, x = near(x), w = near(w), bias = near(bias), y = near(y)] {
    ops_->linear_few(x, w, bias, y);
  });
}

void QueuedOps::linear_input_grad(const Tensor& dy, const Tensor& w, Tensor dx) {
  put([this, dy = near(dy), w = near(w), dx = near(dx)] { ops_->linear_input_grad(dy, w, dx); });
}

void QueuedOps::linear_weight_grad(const Tensor& dy, const Tensor& x, Tensor dw, bool accumulate) {
  put([this, dy = near(dy), x = near(x), dw = near(dw), accumulate] {
    ops_->linear_weight_grad(dy, x, dw, accumulate);
  });
}

void QueuedOps::bias_grad(const Tensor& dy, Tensor db, bool accumulate) {
  put([this, dy = near(dy), db = near(db), accumulate] { ops_->bias_grad(dy, db, accumulate); });
}

size_t QueuedOps::linear_workspace(int64_t rows, int64_t inputs, int64_t outputs,
                                   DType dtype) const {
  return ops_->linear_workspace(rows, inputs, outputs, dtype);
}

void QueuedOps::norm(const NormInputs& in, Tensor sum, Tensor y, Tensor stats) {
  put([this,
       in = NormInputs{in.kind, in.epsilon, near(in.x), near(in.residual), near(in.weight),
                       near(in.bias)},
       sum = near(sum), y = near(y), stats = near(stats)] { ops_->norm(in, sum, y, stats); });
}

void QueuedOps::norm_again(NormKind kind, const Tensor& x, const Tensor& stats,
                           const Tensor& weight, const Tensor& bias, Tensor y) {
  put([this, kind, x = near(x), stats = near(stats), weight = near(weight), bias = near(bias),
       y = near(y)] { ops_->norm_again(kind, x, stats, weight, bias, y); });
}

void QueuedOps::norm_grad(const NormGrad& in, Tensor dx, Tensor dweight, Tensor dbias) {
  put([this,
       in = NormGrad{in.kind, near(in.x), near(in.stats), near(in.weight), near(in.dy),
                     near(in.residual), in.accumulate},
       dx = near(dx), dweight = near(dweight),
       dbias = near(dbias)] { ops_->norm_grad(in, dx, dweight, dbias); });
}

size_t QueuedOps::norm_workspace(int64_t rows, int64_t width) const {
  return ops_->norm_workspace(rows, width);
}

void QueuedOps::head_norm(const AttentionShape& shape, float epsilon, const Tensor& qkv,
                          const Tensor& q_weight, const Tensor& k_weight, Tensor out, Tensor rstd) {
  AttentionShape at = shape;
  at.first_keys = near(shape.first_keys);
  put([this, shape = at, epsilon, qkv = near(qkv), q_weight = near(q_weight),
       k_weight = near(k_weight), out = near(out),
       rstd = near(rstd)] { ops_->head_norm(shape, epsilon, qkv, q_weight, k_weight, out, rstd); });
}

void QueuedOps::head_norm_grad(const AttentionShape& shape, const Tensor& qkv, const Tensor& rstd,
                               const Tensor& q_weight, const Tensor& k_weight, Tensor dqkv,
                               Tensor dq_weight, Tensor dk_weight, bool accumulate) {
  AttentionShape at = shape;
  at.first_keys = near(shape.first_keys);
  put([this, shape = at, qkv = near(qkv), rstd = near(rstd), q_weight = near(q_weight),
       k_weight = near(k_weight), dqkv = near(dqkv), dq_weight = near(dq_weight),
       dk_weight = near(dk_weight), accumulate] {
    ops_->head_norm_grad(shape, qkv, rstd, q_weight, k_weight, dqkv, dq_weight, dk_weight,
                         accumulate);
  });
}

void QueuedOps::activation(ActivationKind kind, const Tensor& pre, Tensor y) {
  put([this, kind, pre = near(pre), y = near(y)] { ops_->activation(kind, pre, y); });
}

void QueuedOps::activation_grad(ActivationKind kind, const Tensor& pre, Tensor dy_to_y,
                                Tensor dpre) {
  put([this, kind, pre = near(pre), dy_to_y = near(dy_to_y), dpre = near(dpre)] {
    ops_->activation_grad(kind, pre, dy_to_y, dpre);
  });
}

void QueuedOps::add(const Tensor& a, const Tensor& b, Tensor y) {
  put([this, a = near(a), b = near(b), y = near(y)] { ops_->add(a, b, y); });
}

void QueuedOps::dropout(Tensor x, const Dropout& dropout) {
  put([this, x = near(x), dropout] { ops_->dropout(x, dropout); });
}

void QueuedOps::rope(const RopeShape& shape, const Tensor& table, Tensor qkv, bool inverse) {
  put([this, shape, table = near(table), qkv = near(qkv), inverse] {
    ops_->rope(shape, table, qkv, inverse);
  });
}

void QueuedOps::attention(const AttentionShape& shape, const Tensor& qkv, Tensor out, Tensor lse) {
  AttentionShape at = shape;
  at.first_keys = near(shape.first_keys);
  put([this, shape = at, qkv = near(qkv), out = near(out), lse = near(lse)] {
    ops_->attention(shape, qkv, out, lse);
  });
}

void QueuedOps::attention_grad(const AttentionShape& shape, const Tensor& qkv, const Tensor& out,
                               const Tensor& dout, const Tensor& lse, Tensor dqkv) {
  AttentionShape at = shape;
  at.first_keys = near(shape.first_keys);
  put([this, shape = at, qkv = near(qkv), out = near(out), dout = near(dout), lse = near(lse),
       dqkv = near(dqkv)] { ops_->attention_grad(shape, qkv, out, dout, lse, dqkv); });
}

size_t QueuedOps::attention_workspace(const AttentionShape& shape, DType dtype) const {
  return ops_->attention_workspace(shape, dtype);
}

size_t QueuedOps::attention_cached_workspace(const AttentionShape& shape, int64_t positions) const {
  return ops_->attention_cached_workspace(shape, positions);
}

void QueuedOps::embed(const Embedding& e, const Tensor& token_table, const Tensor& position_table,
                      Tensor y) {
  Embedding at = e;
  at.ids = near(e.ids);
  put([this, e = at, token_table = near(token_table), position_table = near(position_table),
       y = near(y)] { ops_->embed(e, token_table, position_table, y); });
}

void QueuedOps::embed_grad(const Embedding& e, const Tensor& dy, Tensor dtoken_table,
                           bool accumulate_tokens, Tensor dposition_table,
                           bool accumulate_positions) {
  Embedding at = e;
  at.ids = near(e.ids);
  put([this, e = at, dy = near(dy), dtoken_table = near(dtoken_table), accumulate_tokens,
       dposition_table = near(dposition_table), accumulate_positions] {
    ops_->embed_grad(e, dy, dtoken_table, accumulate_tokens, dposition_table, accumulate_positions);
  });
}

void QueuedOps::cross_entropy(const CrossEntropy& ce, Tensor logits, const Tensor& targets,
                              Tensor losses) {
  CrossEntropy seen = ce;
  seen.state = near(ce.state);
  put([this, ce = seen, logits = near(logits), targets = near(targets), losses = near(losses)] {
    ops_->cross_entropy(ce, logits, targets, losses);
  });
}

void QueuedOps::cross_entropy_statistics(const VocabularyPart& part, const Tensor& logits,
                                         const Tensor& targets, Tensor statistics) {
  put([this, part, logits = near(logits), targets = near(targets), statistics = near(statistics)] {
    ops_->cross_entropy_statistics(part, logits, targets, statistics);
  });
}

void QueuedOps::cross_entropy_joined(const CrossEntropy& ce, const VocabularyPart& part,
                                     Tensor logits, const Tensor& targets, const Tensor& statistics,
                                     Tensor losses) {
  CrossEntropy seen = ce;
  seen.state = near(ce.state);
  put([this, ce = seen, part, logits = near(logits), targets = near(targets),
       statistics = near(statistics), losses = near(losses)] {
    ops_->cross_entropy_joined(ce, part, logits, targets, statistics, losses);
  });
}

size_t QueuedOps::choose_workspace(int64_t rows, int64_t vocabulary) const {
  return ops_->choose_workspace(rows, vocabulary);
}

void QueuedOps::sum(const Tensor& x, Tensor total, bool accumulate) {
  put([this, x = near(x), total = near(total), accumulate] { ops_->sum(x, total, accumulate); });
}

void QueuedOps::sum_squares(const Tensor& x, Tensor exact) {
  put([this, x = near(x), exact = near(exact)] { ops_->sum_squares(x, exact); });
}

size_t QueuedOps::sum_workspace(int64_t elements) const {
  return ops_->sum_workspace(elements);
}

void QueuedOps::decide(const StepRules& rules, const Tensor& exact, Tensor state) {
  put([this, rules, exact = near(exact), state = near(state)] {
    ops_->decide(rules, exact, state);
  });
}

void QueuedOps::adamw(const AdamWStep& step, Tensor weights, const Tensor& grads, Tensor momentum,
                      Tensor variance, Tensor compute) {
  AdamWStep seen = step;
  seen.state = near(step.state);
  put([this, step = seen, weights = near(weights), grads = near(grads), momentum = near(momentum),
       variance = near(variance), compute = near(compute)] {
    ops_->adamw(step, weights, grads, momentum, variance, compute);
  });
}

}  // namespace rankine

#include "ops/timed_ops.h"

#include <algorithm>
#include <chrono>

namespace rankine {

class TimedOps::Clock {
 public:
  Clock(TimedOps& owner, std::string_view name)
      : owner_(owner), name_(name), start_(std::chrono::steady_clock::now()) {}
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  ~Clock() {
    owner_.ops_.synchronize();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start_;
    auto found = owner_.totals_.find(name_);
    if (found == owner_.totals_.end()) found = owner_.totals_.emplace(name_, Total{}).first;
    ++found->second.calls;
    found->second.seconds += taken.count();
  }

 private:
  TimedOps& owner_;
  std::string_view name_;
  std::chrono::steady_clock::time_point start_;
};

std::vector<TimedOps::Line> TimedOps::lines() const {
  std::vector<Line> out;
  for (const auto& [name, total] : totals_) out.push_back({name, total.calls, total.seconds});
  std::sort(out.begin(), out.end(),
            [](const Line& a, const Line& b) { return a.seconds > b.seconds; });
  return out;
}

std::string TimedOps::description() const {
  return ops_.description();
}

int TimedOps::threads() const {
  return ops_.threads();
}

bool TimedOps::native(DType dtype) const {
  return ops_.native(dtype);
}

void TimedOps::set_workspace(Tensor bytes) {
  ops_.set_workspace(bytes);
}

void TimedOps::synchronize() {
  ops_.synchronize();
}

void TimedOps::upload(const void* host, Tensor to) {
  const Clock clock(*this, "upload");
  ops_.upload(host, to);
}

void TimedOps::download(const Tensor& from, void* host) {
  const Clock clock(*this, "download");
  ops_.download(from, host);
}

void TimedOps::cast(const Tensor& from, Tensor to) {
  const Clock clock(*this, "cast");
  ops_.cast(from, to);
}

void TimedOps::fill(Tensor x, float value) {
  const Clock clock(*this, "fill");
  ops_.fill(x, value);
}

void TimedOps::fill_normal(Tensor x, RandomKey key, uint64_t first_index, float std) {
  const Clock clock(*this, "fill_normal");
  ops_.fill_normal(x, key, first_index, std);
}

void TimedOps::linear(const Tensor& x, const Tensor& w, const Tensor& bias, Tensor y) {
  const Clock clock(*this, "linear");
  ops_.linear(x, w, bias, y);
}

void TimedOps::linear_few(const Tensor& x, const Tensor& w, const Tensor& bias, Tensor y) {
  const Clock clock(*this, "linear_few");
  ops_.linear_few(x, w, bias, y);
}

void TimedOps::linear_input_grad(const Tensor& dy, const Tensor& w, Tensor dx) {
  const Clock clock(*this, "linear_input_grad");
  ops_.linear_input_grad(dy, w, dx);
}

void TimedOps::linear_weight_grad(const Tensor& dy, const Tensor& x, Tensor dw, bool accumulate) {
  const Clock clock(*this, "linear_weight_grad");
  ops_.linear_weight_grad(dy, x, dw, accumulate);
}

void TimedOps::bias_grad(const Tensor& dy, Tensor db, bool accumulate) {
  const Clock clock(*this, "bias_grad");
  ops_.bias_grad(dy, db, accumulate);
}

size_t TimedOps::linear_workspace(int64_t rows, int64_t inputs, int64_t outputs,
                                  DType dtype) const {
  return ops_.linear_workspace(rows, inputs, outputs, dtype);
}

void TimedOps::norm(const NormInputs& in, Tensor sum, Tensor y, Tensor stats) {
  const Clock clock(*this, "norm");
  ops_.norm(in, sum, y, stats);
}

void TimedOps::norm_again(NormKind kind, const Tensor& x, const Tensor& stats, const Tensor& weight,
                          const Tensor& bias, Tensor y) {
  const Clock clock(*this, "norm_again");
  ops_.norm_again(kind, x, stats, weight, bias, y);
}

void TimedOps::norm_grad(const NormGrad& in, Tensor dx, Tensor dweight, Tensor dbias) {
  const Clock clock(*this, "norm_grad");
  ops_.norm_grad(in, dx, dweight, dbias);
}

size_t TimedOps::norm_workspace(int64_t rows, int64_t width) const {
  return ops_.norm_workspace(rows, width);
}

void TimedOps::head_norm(const AttentionShape& shape, float epsilon, const Tensor& qkv,
                         const Tensor& q_weight, const Tensor& k_weight, Tensor out, Tensor rstd) {
  const Clock clock(*this, "head_norm");
  ops_.head_norm(shape, epsilon, qkv, q_weight, k_weight, out, rstd);
}

void TimedOps::head_norm_grad(const AttentionShape& shape, const Tensor& qkv, const Tensor& rstd,
                              const Tensor& q_weight, const Tensor& k_weight, Tensor dqkv,
                              Tensor dq_weight, Tensor dk_weight, bool accumulate) {
  const Clock clock(*this, "head_norm_grad");
  ops_.head_norm_grad(shape, qkv, rstd, q_weight, k_weight, dqkv, dq_weight, dk_weight, accumulate);
}

void TimedOps::activation(ActivationKind kind, const Tensor& pre, Tensor y) {
  const Clock clock(*this, "activation");
  ops_.activation(kind, pre, y);
}

void TimedOps::activation_grad(ActivationKind kind, const Tensor& pre, Tensor dy_to_y,
                               Tensor dpre) {
  const Clock clock(*this, "activation_grad");
  ops_.activation_grad(kind, pre, dy_to_y, dpre);
}

void TimedOps::add(const Tensor& a, const Tensor& b, Tensor y) {
  const Clock clock(*this, "add");
  ops_.add(a, b, y);
}

void TimedOps::dropout(Tensor x, const Dropout& dropout) {
  const Clock clock(*this, "dropout");
  ops_.dropout(x, dropout);
}

void TimedOps::rope(const RopeShape& shape, const Tensor& table, Tensor qkv, bool inverse) {
  const Clock clock(*this, "rope");
  ops_.rope(shape, table, qkv, inverse);
}

void TimedOps::attention(const AttentionShape& shape, const Tensor& qkv, Tensor out, Tensor lse) {
  const Clock clock(*this, "attention");
  ops_.attention(shape, qkv, out, lse);
}

void TimedOps::attention_grad(const AttentionShape& shape, const Tensor& qkv, const Tensor& out,
                              const Tensor& dout, const Tensor& lse, Tensor dqkv) {
  const Clock clock(*this, "attention_grad");
  ops_.attention_grad(shape, qkv, out, dout, lse, dqkv);
}

size_t TimedOps::attention_workspace(const AttentionShape& shape, DType dtype) const {
  return ops_.attention_workspace(shape, dtype);
}

void TimedOps::attention_cached(const AttentionShape& shape, const Tensor& qkv,
                                std::span<const KvCache> caches, Tensor out) {
  const Clock clock(*this, "attention_cached");
  ops_.attention_cached(shape, qkv, caches, out);
}

size_t TimedOps::attention_cached_workspace(const AttentionShape& shape, int64_t positions) const {
  return ops_.attention_cached_workspace(shape, positions);
}

void TimedOps::embed(const Embedding& e, const Tensor& token_table, const Tensor& position_table,
                     Tensor y) {
  const Clock clock(*this, "embed");
  ops_.embed(e, token_table, position_table, y);
}

void TimedOps::embed_grad(const Embedding& e, const Tensor& dy, Tensor dtoken_table,
                          bool accumulate_tokens, Tensor dposition_table,
                          bool accumulate_positions) {
  const Clock clock(*this, "embed_grad");
  ops_.embed_grad(e, dy, dtoken_table, accumulate_tokens, dposition_table, accumulate_positions);
}

void TimedOps::cross_entropy(const CrossEntropy& ce, Tensor logits, const Tensor& targets,
                             Tensor losses) {
  const Clock clock(*this, "cross_entropy");
  ops_.cross_entropy(ce, logits, targets, losses);
}

void TimedOps::cross_entropy_statistics(const VocabularyPart& part, const Tensor& logits,
                                        const Tensor& targets, Tensor statistics) {
  const Clock clock(*this, "cross_entropy");
  ops_.cross_entropy_statistics(part, logits, targets, statistics);
}

void TimedOps::cross_entropy_joined(const CrossEntropy& ce, const VocabularyPart& part,
                                    Tensor logits, const Tensor& targets, const Tensor& statistics,
                                    Tensor losses) {
  const Clock clock(*this, "cross_entropy");
  ops_.cross_entropy_joined(ce, part, logits, targets, statistics, losses);
}

void TimedOps::choose_tokens(const TokenChoice& choice, const Tensor& logits,
                             std::span<const double> at, std::span<int32_t> tokens) {
  const Clock clock(*this, "choose_tokens");
  ops_.choose_tokens(choice, logits, at, tokens);
}

size_t TimedOps::choose_workspace(int64_t rows, int64_t vocabulary) const {
  return ops_.choose_workspace(rows, vocabulary);
}

void TimedOps::sum(const Tensor& x, Tensor total, bool accumulate) {
  const Clock clock(*this, "sum");
  ops_.sum(x, total, accumulate);
}

void TimedOps::sum_squares(const Tensor& x, Tensor exact) {
  const Clock clock(*this, "sum_squares");
  ops_.sum_squares(x, exact);
}

size_t TimedOps::sum_workspace(int64_t elements) const {
  return ops_.sum_workspace(elements);
}

void TimedOps::decide(const StepRules& rules, const Tensor& exact, Tensor state) {
  const Clock clock(*this, "decide");
  ops_.decide(rules, exact, state);
}

void TimedOps::adamw(const AdamWStep& step, Tensor weights, const Tensor& grads, Tensor momentum,
                     Tensor variance, Tensor compute) {
  const Clock clock(*this, "adamw");
  ops_.adamw(step, weights, grads, momentum, variance, compute);
}

}  // namespace rankine

#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ops/ops.h"

namespace rankine {

// Another Ops with a stopwatch: every operation is passed on, waited for and its time added up by
// name. For measurements; the waiting hides nothing on a processor and overlap on a device.
class TimedOps final : public Ops {
 public:
  explicit TimedOps(Ops& ops) : ops_(ops) {}

  struct Line {
    std::string name;
    int64_t calls;
    double seconds;
  };
  std::vector<Line> lines() const;  // largest first
  void reset() { totals_.clear(); }

  std::string description() const override;
  int threads() const override;
  bool native(DType dtype) const override;
  void set_workspace(Tensor bytes) override;
  void synchronize() override;
  Device& device() override { return ops_.device(); }
  Queue& queue() override { return ops_.queue(); }
  Ops& host() override { return &ops_.host() == &ops_ ? *this : ops_.host(); }
  void upload(const void* host, Tensor to) override;
  void download(const Tensor& from, void* host) override;
  void read_later(const Tensor& from, void* host) override { ops_.read_later(from, host); }
  void cast(const Tensor& from, Tensor to) override;
  void fill(Tensor x, float value) override;
  void fill_normal(Tensor x, RandomKey key, uint64_t first_index, float std) override;
  void linear(const Tensor& x, const Tensor& w, const Tensor& bias, Tensor y) override;
  void linear_few(const Tensor& x, const Tensor& w, const Tensor& bias, Tensor y) override;
  void linear_input_grad(const Tensor& dy, const Tensor& w, Tensor dx) override;
  void linear_weight_grad(const Tensor& dy, const Tensor& x, Tensor dw, bool accumulate) override;
  void bias_grad(const Tensor& dy, Tensor db, bool accumulate) override;
  size_t linear_workspace(int64_t rows, int64_t inputs, int64_t outputs,
                          DType dtype) const override;
  void norm(const NormInputs& in, Tensor sum, Tensor y, Tensor stats) override;
  void norm_again(NormKind kind, const Tensor& x, const Tensor& stats, const Tensor& weight,
                  const Tensor& bias, Tensor y) override;
  void norm_grad(const NormGrad& in, Tensor dx, Tensor dweight, Tensor dbias) override;
  size_t norm_workspace(int64_t rows, int64_t width) const override;
  void head_norm(const AttentionShape& shape, float epsilon, const Tensor& qkv,
                 const Tensor& q_weight, const Tensor& k_weight, Tensor out, Tensor rstd) override;
  void head_norm_grad(const AttentionShape& shape, const Tensor& qkv, const Tensor& rstd,
                      const Tensor& q_weight, const Tensor& k_weight, Tensor dqkv, Tensor dq_weight,
                      Tensor dk_weight, bool accumulate) override;
  void activation(ActivationKind kind, const Tensor& pre, Tensor y) override;
  void activation_grad(ActivationKind kind, const Tensor& pre, Tensor dy_to_y,
                       Tensor dpre) override;
  void add(const Tensor& a, const Tensor& b, Tensor y) override;
  void dropout(Tensor x, const Dropout& dropout) override;
  void rope(const RopeShape& shape, const Tensor& table, Tensor qkv, bool inverse) override;
  void attention(const AttentionShape& shape, const Tensor& qkv, Tensor out, Tensor lse) override;
  void attention_grad(const AttentionShape& shape, const Tensor& qkv, const Tensor& out,
                      const Tensor& dout, const Tensor& lse, Tensor dqkv) override;
  size_t attention_workspace(const AttentionShape& shape, DType dtype) const override;
  void attention_cached(const AttentionShape& shape, const Tensor& qkv,
                        std::span<const KvCache> caches, Tensor out) override;
  size_t attention_cached_workspace(const AttentionShape& shape, int64_t positions) const override;
  void embed(const Embedding& e, const Tensor& token_table, const Tensor& position_table,
             Tensor y) override;
  void embed_grad(const Embedding& e, const Tensor& dy, Tensor dtoken_table, bool accumulate_tokens,
                  Tensor dposition_table, bool accumulate_positions) override;
  void cross_entropy(const CrossEntropy& ce, Tensor logits, const Tensor& targets,
                     Tensor losses) override;
  void cross_entropy_statistics(const VocabularyPart& part, const Tensor& logits,
                                const Tensor& targets, Tensor statistics) override;
  void cross_entropy_joined(const CrossEntropy& ce, const VocabularyPart& part, Tensor logits,
                            const Tensor& targets, const Tensor& statistics,
                            Tensor losses) override;
  void choose_tokens(const TokenChoice& choice, const Tensor& logits, std::span<const double> at,
                     std::span<int32_t> tokens) override;
  size_t choose_workspace(int64_t rows, int64_t vocabulary) const override;
  void sum(const Tensor& x, Tensor total, bool accumulate) override;
  void sum_squares(const Tensor& x, Tensor exact) override;
  size_t sum_workspace(int64_t elements) const override;
  void decide(const StepRules& rules, const Tensor& exact, Tensor state) override;
  void adamw(const AdamWStep& step, Tensor weights, const Tensor& grads, Tensor momentum,
             Tensor variance, Tensor compute) override;

 private:
  struct Total {
    int64_t calls = 0;
    double seconds = 0;
  };
  class Clock;
  Ops& ops_;
  std::map<std::string, Total, std::less<>> totals_;
};

}  // namespace rankine

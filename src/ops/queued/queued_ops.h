#pragma once
#include "ops/ops.h"
#include "tensor/queued/queued_device.h"
#include "tensor/queued/work_queue.h"

namespace rankine {

// A simulated device: another Ops whose operations a thread of its own does, later and with random
// delays, on memory that the host cannot touch. What is right on it does not rest on a call having
// done its work when it returns. For tests; it is no faster and no other hardware.
class QueuedOps final : public Ops {
 public:
  // `device_ops` does the work and `host_ops` that on the host tier's memory; `seed` chooses
  // delays.
  QueuedOps(std::unique_ptr<Ops> device_ops, std::unique_ptr<Ops> host_ops, uint64_t seed);
  ~QueuedOps() override;

  Device& device() override { return device_; }
  Queue& queue() override { return queue_; }
  Ops& host() override { return *host_; }
  std::string description() const override;
  int threads() const override { return ops_->threads(); }
  bool native(DType dtype) const override { return ops_->native(dtype); }
  void set_workspace(Tensor bytes) override;
  void synchronize() override;
  void upload(const void* host, Tensor to) override;
  void download(const Tensor& from, void* host) override;
  void read_later(const Tensor& from, void* host) override;
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
  template <class Work>
  void put(Work&& work) {
    queue_.put(std::forward<Work>(work));
  }
  // The tensor as the queue's thread sees it; it must be the device's.
  Tensor near(const Tensor& x) const;

  QueuedDevice device_;
  std::unique_ptr<Ops> ops_, host_;
  WorkQueue queue_;  // goes first
};

}  // namespace rankine

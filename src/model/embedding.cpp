#include "model/block.h"
#include "model/layer_parameters.h"

namespace rankine {
namespace {

// Token embedding, plus learned positions where the family has them.
class Embedding final : public Block {
 public:
  explicit Embedding(const ModelConfig& config) : config_(config) {}

  BlockDescription describe(const Ops&, MicroShape shape, DType dtype) const override {
    BlockDescription d;
    d.name = "embedding";
    d.parameters = embedding_parameters(config_);
    d.backward_reads_parameters = false;
    if (config_.dropout > 0)
      d.backward_scratch = {{"dropped_grad", dtype, Shape{shape.rows(), config_.hidden}}};
    return d;
  }

  void forward(const BlockRun& run, Tensor y) const override {
    const Tensor out = rows_of(run, y, config_.hidden);
    const int64_t past = run.cache != nullptr ? run.cache->past : 0;
    run.ops.embed({run.ids, run.shape.tokens, past}, run.params[0],
                  learned() ? run.params[1] : Tensor{}, out);
    apply_dropout(run, config_, 0, out);
  }

  void backward_input(const BlockRun&, const Tensor&, Tensor) const override {}

  void backward_weight(const BlockRun& run, const Tensor& dy) const override {
    Tensor d = rows_of(run, dy, config_.hidden);
    if (config_.dropout > 0) {
      const Tensor dropped = rows_of(run, run.scratch[0], config_.hidden);
      run.ops.cast(d, dropped);
      apply_dropout(run, config_, 0, dropped);
      d = dropped;
    }
    // A tied matrix already holds the head's gradient of this micro-batch.
    run.ops.embed_grad({run.ids, run.shape.tokens, 0}, d, run.grads[0],
                       config_.tied || run.accumulate, learned() ? run.grads[1] : Tensor{},
                       run.accumulate);
  }

 private:
  bool learned() const { return config_.position == PositionKind::learned; }
  ModelConfig config_;
};

}  // namespace

std::unique_ptr<Block> make_embedding(const ModelConfig& config) {
  return std::make_unique<Embedding>(config);
}

}  // namespace rankine

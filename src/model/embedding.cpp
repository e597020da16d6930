#include "model/block_parameters.h"
#include "model/model.h"

namespace rankine {
namespace {

// Token embedding, plus learned positions where the family has them. Each rank of the tensor axis
// looks up the tokens it has; the first adds the positions.
class Embedding final : public Block {
 public:
  Embedding(const ModelConfig& config, const ModelPart& part)
      : config_(config),
        split_(part.split),
        parameters_(embedding_parameters(config, part.split)),
        separate_(!config.tied || part.tied_copy) {}

  BlockDescription describe(const Ops&, MicroShape shape, DType dtype) const override {
    const int64_t own = split_.rows(shape.rows());
    BlockDescription d;
    d.name = "embedding";
    d.parameters = parameters_.specs;
    d.backward_reads_parameters = false;
    d.output = {"output", dtype, Shape{own, config_.hidden}};
    if (split_.splits_rows())
      d.forward_scratch = {{"all_rows", dtype, Shape{shape.rows(), config_.hidden}}};
    if (config_.dropout > 0 || split_.splits_rows())
      d.backward_scratch = {{"all_rows_grad", dtype, Shape{shape.rows(), config_.hidden}}};
    return d;
  }

  void forward(const BlockRun& run, Tensor y) const override {
    const Tensor out = own_rows_of(run, y, config_.hidden);
    const Tensor all = split_.splits_rows() ? rows_of(run, run.scratch[0], config_.hidden) : out;
    const Tensor tokens = group_of(run.params, parameters_.tokens);
    const Tensor positions =
        split_.rank == 0 ? group_of(run.params, parameters_.positions) : Tensor{};
    Ops::Embedding rows = lookup(run);
    if (run.caches.empty()) run.ops.embed(rows, tokens, positions, all);
    for (size_t s = 0; s < run.caches.size(); ++s) {
      const int64_t first = static_cast<int64_t>(s) * run.shape.tokens;
      rows.ids = run.ids.range(first, run.shape.tokens);
      rows.first_position = run.caches[s].past;
      run.ops.embed(rows, tokens, positions, all.rows(first, run.shape.tokens));
    }
    run.region.leave(all).lead(run.ops.queue());
    if (split_.splits_rows()) run.ops.cast(run.region.own(all), out);
    apply_dropout(run, config_, 0, out);
  }

  void backward_input(const BlockRun&, const Tensor&, Tensor) const override {}

  void backward_weight(const BlockRun& run, const Tensor& dy) const override {
    Tensor d = own_rows_of(run, dy, config_.hidden);
    if (config_.dropout > 0 || split_.splits_rows()) {
      const Tensor all = rows_of(run, run.scratch[0], config_.hidden), own = run.region.own(all);
      run.ops.cast(d, own);
      apply_dropout(run, config_, 0, own);
      run.region.enter(all);
      d = all;
    }
    // A tied matrix already holds the head's gradient of this micro-batch.
    run.ops.embed_grad(lookup(run), d, group_of(run.grads, parameters_.tokens),
                       !separate_ || run.accumulate, group_of(run.grads, parameters_.positions),
                       run.accumulate);
  }

 private:
  Ops::Embedding lookup(const BlockRun& run) const {
    return {.ids = run.ids,
            .tokens = run.shape.tokens,
            .first_token = split_.rank * split_.stored_vocabulary(config_),
            .vocabulary = config_.vocabulary};
  }

  ModelConfig config_;
  TensorSplit split_;
  EmbeddingParameters parameters_;
  bool separate_;  // nobody else adds to the gradient of the token matrix
};

}  // namespace

std::unique_ptr<Block> make_embedding(const ModelConfig& config, const ModelPart& part) {
  return std::make_unique<Embedding>(config, part);
}

}  // namespace rankine

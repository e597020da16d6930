#pragma once
#include "model/block_parameters.h"
#include "model/model.h"

namespace rankine {

// The final norm, the vocabulary product and the cross-entropy. While training everything happens
// in backward_input, chunk by chunk, so that whole logits never exist: forward() and
// backward_weight() have nothing to do. Otherwise forward() sums the losses.
class LmHead : public Block {
 public:
  LmHead(const ModelConfig& config, const ModelPart& part);
  BlockDescription describe(const Ops& ops, MicroShape shape, DType dtype) const override;
  void forward(const BlockRun& run, Tensor y) const override;
  void backward_input(const BlockRun& run, const Tensor& dy, Tensor dx) const override;
  void backward_weight(const BlockRun&, const Tensor&) const override {}
  // On one tensor rank: logits [n, Vp] of rows [first, first + n) of saved[0]; n at most
  // logit_rows().
  Tensor logits(const BlockRun& run, int64_t first, int64_t count) const;
  // f32 [R]: what forward() summed up; 0 where the target is ignored.
  Tensor token_losses(const BlockRun& run) const;
  static int64_t logit_rows(int64_t rows);  // rows of logits held at a time

 private:
  struct Gradients;
  Tensor stats_of(const BlockRun& run) const;
  Tensor norm_inputs(const BlockRun& run) const;
  void losses(const BlockRun& run, const Gradients* gradients) const;
  ModelConfig config_;
  TensorSplit split_;
  HeadParameters parameters_;
};

}  // namespace rankine

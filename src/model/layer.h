#pragma once
#include "model/attention.h"
#include "model/feed_forward.h"
#include "model/model.h"

namespace rankine {

// x + attention(x), then + feed_forward(.): one transformer layer, or the tensor axis's part of
// one.
class Layer final : public Block {
 public:
  Layer(const ModelConfig& config, int64_t layer, const ModelPart& part, Recompute recompute);

  BlockDescription describe(const Ops& ops, MicroShape shape, DType dtype) const override;
  void forward(const BlockRun& run, Tensor y) const override;
  void recompute(const BlockRun& run) const override;
  void backward_input(const BlockRun& run, const Tensor& dy, Tensor dx) const override;
  void backward_weight(const BlockRun& run, const Tensor& dy) const override;
  void backward(const BlockRun& run, const Tensor& dy, Tensor dx) const override;

 private:
  std::vector<PartTensors> tensors(MicroShape shape, DType dtype) const;
  double recompute_flops(MicroShape shape) const;
  Tensor own_hidden(const BlockRun& run, const Tensor& t) const {
    return own_rows_of(run, t, config_.hidden);
  }
  Tensor own_x(const BlockRun& run) const { return own_hidden(run, run.saved[input_]); }
  Tensor own_dmiddle(const BlockRun& run) const { return own_hidden(run, run.pending[dmiddle_]); }
  void norm_weights(const BlockRun& run) const;

  ModelConfig config_;
  int64_t layer_;
  TensorSplit split_;
  Recompute recompute_;
  LayerParameters parameters_;
  Attention attention_;
  FeedForward feed_forward_;
  size_t input_ = 0, dmiddle_ = 0;  // numbers of the layer's own tensors
};

}  // namespace rankine

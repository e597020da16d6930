#include "model/model.h"

#include "model/lm_head.h"

namespace rankine {

Tensor rows_of(const BlockRun& run, const Tensor& tensor, int64_t width) {
  return tensor.as(Shape{run.shape.rows(), width});
}

Tensor own_rows_of(const BlockRun& run, const Tensor& tensor, int64_t width) {
  return tensor.as(Shape{run.region.split().rows(run.shape.rows()), width});
}

void apply_dropout(const BlockRun& run, const ModelConfig& config, int64_t site, Tensor x) {
  if (!run.training || config.dropout <= 0) return;
  const TensorSplit& split = run.region.split();
  const int64_t before = split.splits_rows() ? split.rank * x.elements() : 0;
  run.ops.dropout(
      x, {static_cast<float>(config.dropout), random_key(run.seed, "dropout"),
          (run.dropout_stream << 16) + static_cast<uint64_t>(site), static_cast<uint64_t>(before)});
}

void apply_linear(const BlockRun& run, const Tensor& x, const Tensor& w, const Tensor& bias,
                  Tensor y) {
  if (run.decodes())
    run.ops.linear_few(x, w, bias, y);
  else
    run.ops.linear(x, w, bias, y);
}

Model::Model(const ModelConfig& model_config, const ModelPart& model_part)
    : config(model_config), part(model_part) {
  check(config);
  if (part.stages.empty()) part.stages = {{0, block_count(config)}};
  for (const ModelPart::Stage& stage : part.stages) {
    int64_t recomputing = part.recompute_layers < 0 ? config.layers : part.recompute_layers;
    for (int64_t b = stage.first; b < stage.first + stage.count; ++b) {
      if (b == 0) {
        blocks.push_back(make_embedding(config, part));
      } else if (b <= config.layers) {
        blocks.push_back(
            make_layer(config, b - 1, part, recomputing-- > 0 ? part.recompute : Recompute::none));
      } else {
        auto head = std::make_unique<LmHead>(config, part);
        head_ = head.get();
        blocks.push_back(std::move(head));
      }
    }
  }
}

const LmHead& Model::head() const {
  expect(head_ != nullptr, "this part of the model has a head");
  return *head_;
}

std::vector<BlockDescription> Model::describe(const Ops& ops, MicroShape shape, DType dtype) const {
  std::vector<BlockDescription> out;
  for (const auto& block : blocks) out.push_back(block->describe(ops, shape, dtype));
  return out;
}

}  // namespace rankine

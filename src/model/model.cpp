#include "model/block.h"

namespace rankine {

Tensor rows_of(const BlockRun& run, const Tensor& tensor, int64_t width) {
  return tensor.as(Shape{run.shape.rows(), width});
}

void apply_dropout(const BlockRun& run, const ModelConfig& config, int64_t site, Tensor x) {
  if (!run.training || config.dropout <= 0) return;
  run.ops.dropout(x, {static_cast<float>(config.dropout), random_key(run.seed, "dropout"),
                      (run.dropout_stream << 16) + static_cast<uint64_t>(site), 0});
}

Model::Model(const ModelConfig& model_config) : config(model_config) {
  check(config);
  blocks.push_back(make_embedding(config));
  for (int64_t layer = 0; layer < config.layers; ++layer)
    blocks.push_back(make_layer(config, layer));
  auto head = std::make_unique<Head>(config);
  head_ = head.get();
  blocks.push_back(std::move(head));
}

std::vector<BlockDescription> Model::describe(const Ops& ops, MicroShape shape, DType dtype) const {
  std::vector<BlockDescription> out;
  for (const auto& block : blocks) out.push_back(block->describe(ops, shape, dtype));
  return out;
}

}  // namespace rankine

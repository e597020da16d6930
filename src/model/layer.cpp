#include "model/layer.h"

#include <algorithm>

namespace rankine {

Layer::Layer(const ModelConfig& config, int64_t layer, const ModelPart& part, Recompute recompute)
    : config_(config),
      layer_(layer),
      split_(part.split),
      recompute_(recompute),
      parameters_(layer_parameters(config, layer, split_)),
      attention_(config, layer, split_, parameters_.attention),
      feed_forward_(config, layer, split_, parameters_.feed_forward) {
  BlockDescription joined;
  std::vector<PartIndices> at = join_parts(tensors({}, DType::f32), recompute_, joined);
  input_ = at[0].saved[0];
  dmiddle_ = at[0].pending[0];
  attention_.place(std::move(at[1]));
  attention_.branch().place(std::move(at[2]));
  feed_forward_.place(std::move(at[3]));
  feed_forward_.branch().place(std::move(at[4]));
}

// Of the layer itself, its attention and its feed-forward part.
std::vector<PartTensors> Layer::tensors(MicroShape shape, DType dtype) const {
  const Shape own{split_.rows(shape.rows()), config_.hidden};
  PartTensors of_layer;
  of_layer.saved = {{{"input", dtype, own}}};
  of_layer.pending = {{"dmiddle", dtype, own}};
  return {of_layer, attention_.tensors(shape, dtype), attention_.branch().tensors(shape, dtype),
          feed_forward_.tensors(shape, dtype), feed_forward_.branch().tensors(shape, dtype)};
}

BlockDescription Layer::describe(const Ops& ops, MicroShape shape, DType dtype) const {
  BlockDescription d;
  d.name = fmt::format("layers.{}", layer_);
  d.parameters = parameters_.specs;
  d.output = {"output", dtype, Shape{split_.rows(shape.rows()), config_.hidden}};
  join_parts(tensors(shape, dtype), recompute_, d);
  d.workspace =
      std::max(attention_.workspace(ops, shape, dtype), feed_forward_.workspace(ops, shape, dtype));
  d.matmul_flops = attention_.matmul_flops(shape) + feed_forward_.matmul_flops(shape);
  d.attention_flops = attention_.attention_flops(shape);
  d.recompute_flops = recompute_flops(shape);
  return d;
}

double Layer::recompute_flops(MicroShape shape) const {
  if (recompute_ == Recompute::none) return 0;
  const double attention = attention_.attention_flops(shape);
  if (recompute_ == Recompute::selective) return attention;
  return attention + attention_.matmul_flops(shape) + feed_forward_.up_flops(shape);
}

void Layer::forward(const BlockRun& run, Tensor y) const {
  attention_.attend(run, own_x(run));
  feed_forward_.up(run, own_x(run), attention_.own_output(run));
  const Tensor from_mlp = feed_forward_.own_output(run);
  run.ops.add(feed_forward_.own_x(run), from_mlp, own_hidden(run, y));
}

void Layer::recompute(const BlockRun& run) const {
  if (recompute_ == Recompute::full) {
    attention_.attend(run, own_x(run));
    feed_forward_.up(run, own_x(run), attention_.own_output(run));
  } else if (recompute_ == Recompute::selective) {
    attention_.attend_again(run);
  }
}

void Layer::backward_input(const BlockRun& run, const Tensor& dy, Tensor dx) const {
  const Tensor dm = own_dmiddle(run);
  feed_forward_.backward_input(run, dy).lead(run.ops.queue());
  feed_forward_.branch().norm_grad(run, feed_forward_.own_x(run), own_hidden(run, dy), dm);
  attention_.backward_input(run, dm).lead(run.ops.queue());
  attention_.branch().norm_grad(run, own_x(run), dm, own_hidden(run, dx));
}

void Layer::norm_weights(const BlockRun& run) const {
  feed_forward_.branch().norm_weights(run);
  attention_.norm_weights(run);
}

void Layer::backward_weight(const BlockRun& run, const Tensor& dy) const {
  feed_forward_.backward_weight(run, dy);
  attention_.backward_weight(run, own_dmiddle(run), own_x(run));
  norm_weights(run);
}

// With several ranks the sums over them run beside the products of the weights' gradients.
void Layer::backward(const BlockRun& run, const Tensor& dy, Tensor dx) const {
  if (split_.ranks == 1) return Block::backward(run, dy, dx);
  const Tensor dm = own_dmiddle(run);
  Work sum = feed_forward_.backward_input(run, dy);
  feed_forward_.backward_weight(run, dy);
  sum.lead(run.ops.queue());
  feed_forward_.branch().norm_grad(run, feed_forward_.own_x(run), own_hidden(run, dy), dm);
  sum = attention_.backward_input(run, dm);
  attention_.backward_weight(run, dm, own_x(run));
  sum.lead(run.ops.queue());
  attention_.branch().norm_grad(run, own_x(run), dm, own_hidden(run, dx));
  norm_weights(run);
}

std::unique_ptr<Block> make_layer(const ModelConfig& config, int64_t layer, const ModelPart& part,
                                  Recompute recompute) {
  return std::make_unique<Layer>(config, layer, part, recompute);
}

}  // namespace rankine

#include <algorithm>

#include "model/rope_table.h"
#include "runtime/executor.h"

// The executor's memory: what it lists in the plan and how it cuts that up.
namespace rankine {
namespace {

uint64_t aligned_bytes(const TensorSpec& spec) {
  const auto bytes = static_cast<uint64_t>(spec.shape.elements() * dtype_bytes(spec.dtype));
  return (bytes + MemoryPlan::alignment - 1) / MemoryPlan::alignment * MemoryPlan::alignment;
}

uint64_t total_bytes(std::span<const TensorSpec> specs) {
  uint64_t sum = 0;
  for (const TensorSpec& spec : specs) sum += aligned_bytes(spec);
  return sum;
}

// Cuts the named pool into tensors, one behind another; returns the bytes used so far.
uint64_t cut(const Tensor& pool, uint64_t used, std::span<const TensorSpec> specs,
             std::vector<Tensor>& out) {
  for (const TensorSpec& spec : specs) {
    out.push_back({static_cast<char*>(pool.data) + used, spec.dtype, spec.shape});
    used += aligned_bytes(spec);
  }
  expect(used <= static_cast<uint64_t>(pool.bytes()), "scratch fits its pool");
  return used;
}

template <class Size>
uint64_t most(std::span<const BlockDescription> blocks, Size&& size) {
  uint64_t bytes = 0;
  for (const BlockDescription& block : blocks) bytes = std::max<uint64_t>(bytes, size(block));
  return bytes;
}

uint64_t forward_bytes(std::span<const BlockDescription> blocks) {
  return most(blocks, [](const BlockDescription& b) { return total_bytes(b.forward_scratch); });
}

uint64_t backward_bytes(std::span<const BlockDescription> blocks) {
  return most(blocks, [](const BlockDescription& b) {
    return total_bytes(b.pending) + total_bytes(b.backward_scratch);
  });
}

// Without a backward, a block's saved tensors (all but its input) are scratch of its forward.
uint64_t inference_bytes(std::span<const BlockDescription> blocks) {
  return most(blocks, [](const BlockDescription& b) {
    return total_bytes(b.forward_scratch) +
           (b.saved.empty() ? 0 : total_bytes(std::span(b.saved).subspan(1)));
  });
}

Tensor take_bytes(Arena& arena, std::string_view name, uint64_t bytes) {
  return arena.take(name, DType::u8, Shape{static_cast<int64_t>(bytes)});
}

std::string saved_name(const BlockDescription& block, const TensorSpec& spec) {
  return block.name + "." + spec.name;
}

}  // namespace

std::vector<BlockDescription> Executor::describe(const Ops& ops, const Model& model,
                                                 const ExecutorSetup& setup) {
  std::vector<BlockDescription> blocks = model.describe(ops, setup.shape, setup.compute);
  if (setup.cached)
    for (BlockDescription& block : blocks)
      block.workspace =
          std::max(block.workspace,
                   ops.attention_cached_workspace({1, setup.shape.tokens, model.config.heads,
                                                   model.config.kv_heads, model.config.head_dim, 0},
                                                  setup.positions));
  return blocks;
}

uint64_t Executor::workspace_bytes() const {
  return most(descriptions_, [](const BlockDescription& b) { return b.workspace; });
}

void Executor::add_to(MemoryPlan& plan) const {
  const auto rows = static_cast<uint64_t>(setup_.shape.rows());
  const uint64_t hidden_bytes = rows * static_cast<uint64_t>(model_.config.hidden) *
                                static_cast<uint64_t>(dtype_bytes(setup_.compute));
  plan.add({"ids", "tokens", rows * 4, Life::micro_batch});
  plan.add({"targets", "tokens", rows * 4, Life::micro_batch});
  plan.add({"losses", "sums", 8 * losses_.size()});
  plan.add({"exact sum", "sums", 8 * ExactSum::size});
  if (model_.config.position == PositionKind::rope)
    plan.add({"rope table", "rope table",
              static_cast<uint64_t>(setup_.positions * model_.config.head_dim * 4)});
  plan.add({"workspace", "operations", workspace_bytes()});
  if (setup_.purpose == Purpose::training) {
    for (const BlockDescription& block : descriptions_)
      for (const TensorSpec& spec : block.saved)
        plan.add({saved_name(block, spec), "activations", aligned_bytes(spec), Life::micro_batch});
    plan.add(
        {"forward scratch", "scratch", forward_bytes(descriptions_), Life::scratch, "forward"});
    plan.add(
        {"backward scratch", "scratch", backward_bytes(descriptions_), Life::scratch, "backward"});
    for (const char* name : {"gradient 0", "gradient 1"})
      plan.add({name, "scratch", hidden_bytes, Life::scratch, "backward"});
    return;
  }
  plan.add(
      {"forward scratch", "scratch", inference_bytes(descriptions_), Life::scratch, "forward"});
  for (const char* name : {"hidden 0", "hidden 1"})
    plan.add({name, "activations", hidden_bytes, Life::scratch, "forward"});
  const uint64_t cache_bytes = static_cast<uint64_t>(model_.config.kv_width() * setup_.positions) *
                               static_cast<uint64_t>(dtype_bytes(setup_.compute));
  for (int64_t layer = 0; setup_.cached && layer < model_.config.layers; ++layer)
    for (const char* what : {"keys", "values"})
      plan.add({fmt::format("layers.{}.{}", layer, what), "key/value cache", cache_bytes});
}

void Executor::bind(Arena& arena) {
  const Shape rows{setup_.shape.rows()};
  for (size_t s = 0; s < slots_.size(); ++s) {
    slots_[s].ids = arena.take("ids", DType::i32, rows, static_cast<int>(s));
    slots_[s].targets = arena.take("targets", DType::i32, rows, static_cast<int>(s));
    slots_[s].saved.assign(descriptions_.size(), {});
  }
  loss_sums_ = arena.take("losses", DType::f64, Shape{static_cast<int64_t>(losses_.size())});
  exact_ = arena.take("exact sum", DType::i64, Shape{ExactSum::size});
  ops_.set_workspace(take_bytes(arena, "workspace", workspace_bytes()));
  if (model_.config.position == PositionKind::rope) {
    rope_ = arena.take("rope table", DType::f32, Shape{setup_.positions, model_.config.head_dim});
    const std::vector<float> table = rope_table(model_.config, setup_.positions);
    ops_.upload(table.data(), rope_);
  }
  buffers_.assign(descriptions_.size(), {});
  if (setup_.purpose == Purpose::training)
    bind_training(arena);
  else
    bind_inference(arena);
}

void Executor::bind_training(Arena& arena) {
  const Shape hidden{setup_.shape.rows(), model_.config.hidden};
  const Tensor forward_pool = take_bytes(arena, "forward scratch", forward_bytes(descriptions_));
  const Tensor backward_pool = take_bytes(arena, "backward scratch", backward_bytes(descriptions_));
  gradient_[0] = arena.take("gradient 0", setup_.compute, hidden);
  gradient_[1] = arena.take("gradient 1", setup_.compute, hidden);
  for (size_t b = 0; b < descriptions_.size(); ++b) {
    const BlockDescription& block = descriptions_[b];
    for (size_t s = 0; s < slots_.size(); ++s)
      for (const TensorSpec& spec : block.saved)
        slots_[s].saved[b].push_back(
            arena.take(saved_name(block, spec), spec.dtype, spec.shape, static_cast<int>(s)));
    cut(forward_pool, 0, block.forward_scratch, buffers_[b].forward_scratch);
    const uint64_t used = cut(backward_pool, 0, block.pending, buffers_[b].pending);
    cut(backward_pool, used, block.backward_scratch, buffers_[b].backward_scratch);
  }
}

void Executor::bind_inference(Arena& arena) {
  const Shape hidden{setup_.shape.rows(), model_.config.hidden};
  const Tensor pool = take_bytes(arena, "forward scratch", inference_bytes(descriptions_));
  const Tensor inputs[2] = {arena.take("hidden 0", setup_.compute, hidden),
                            arena.take("hidden 1", setup_.compute, hidden)};
  for (size_t b = 0; b < descriptions_.size(); ++b) {
    const BlockDescription& block = descriptions_[b];
    const uint64_t used = cut(pool, 0, block.forward_scratch, buffers_[b].forward_scratch);
    std::vector<Tensor>& saved = slots_[0].saved[b];
    if (block.saved.empty()) continue;
    saved.push_back(inputs[b % 2]);
    cut(pool, used, std::span(block.saved).subspan(1), saved);
  }
  const ModelConfig& c = model_.config;
  for (int64_t layer = 0; setup_.cached && layer < c.layers; ++layer) {
    const Shape shape{c.kv_heads, setup_.positions, c.head_dim};
    const std::string name = fmt::format("layers.{}.", layer);
    caches_.push_back({arena.take(name + "keys", setup_.compute, shape),
                       arena.take(name + "values", setup_.compute, shape), 0});
  }
}

}  // namespace rankine

#include <algorithm>

#include "model/rope_table.h"
#include "runtime/executor.h"

// The executor's memory: what it lists in the plan and how it cuts that up.
namespace rankine {
namespace {

// Memory from a place on.
struct From {
  char* at;
  DeviceKind device;
};

// Cuts it into tensors, one behind another.
void cut(From from, std::span<const TensorSpec> specs, std::vector<Tensor>& out) {
  for (const TensorSpec& spec : specs) {
    out.push_back({from.at, spec.dtype, spec.shape, from.device});
    from.at += aligned_bytes(spec);
  }
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
  return most(blocks, [](const BlockDescription& b) { return total_bytes(b.backward_scratch); });
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

char* bytes_of(const Tensor& pool, int64_t offset = 0) {
  return static_cast<char*>(pool.data) + offset;
}

From from(const Tensor& pool, int64_t offset = 0) {
  return {bytes_of(pool, offset), pool.device};
}

}  // namespace

std::vector<BlockDescription> Executor::describe(const Ops& ops, const Model& model,
                                                 const ExecutorSetup& setup) {
  std::vector<BlockDescription> blocks = model.describe(ops, setup.shape, setup.compute);
  if (setup.sequences > 0)
    for (BlockDescription& block : blocks)
      block.workspace = std::max(
          {block.workspace,
           ops.attention_cached_workspace({1, setup.shape.tokens, model.config.heads,
                                           model.config.kv_heads, model.config.head_dim, 0},
                                          setup.positions),
           ops.choose_workspace(setup.sequences, model.config.vocabulary)});
  return blocks;
}

// Where the optimizer works; on a processor all memory is one.
Tier Executor::exact_tier() const {
  return store_.setup().apart ? store_.optimizer_memory() : Tier::device;
}

uint64_t Executor::workspace_bytes() const {
  return most(descriptions_, [](const BlockDescription& b) { return b.workspace; });
}

// The embedding takes ids, the head targets.
bool Executor::takes(bool targets) const {
  return descriptions_.empty() ? false
         : targets             ? descriptions_.back().name == "head"
                               : descriptions_.front().name == "embedding";
}

// Pages are copied straight from and to it, and the arena aligns to less.
uint64_t Executor::saved_bytes() const {
  const bool pages = tier_ != nullptr && tier_->on_disk();
  return static_cast<uint64_t>(plan_.saved_bytes) + (pages ? TierFile::alignment : 0);
}

void Executor::add_to(MemoryPlan& plan) const {
  const auto rows = static_cast<uint64_t>(setup_.shape.rows() * micros_);
  if (takes(false)) plan.add({"ids", "tokens", rows * 4});
  if (takes(true)) plan.add({"targets", "tokens", rows * 4});
  if (setup_.document_mask) plan.add({"documents", "tokens", rows * 4});
  plan.add({"losses", "sums", 8 * losses_.size()});
  plan.add({"exact sum", "sums", 8 * ExactSum::size, Life::permanent, "", exact_tier()});
  if (setup_.purpose == Purpose::training) {
    plan.add({"step state", "sums", sizeof(StepState)});
    if (exact_tier() == Tier::host)
      plan.add(
          {"optimizer step state", "sums", sizeof(StepState), Life::permanent, "", Tier::host});
  }
  if (model_.config.position == PositionKind::rope)
    plan.add({"rope table", "rope table",
              static_cast<uint64_t>(setup_.positions * model_.config.head_dim * 4)});
  plan.add({"workspace", "operations", workspace_bytes()});
  if (setup_.purpose == Purpose::training) {
    plan.add({"activations", "activations", saved_bytes()});
    if (tier_ != nullptr) tier_->add_to(plan);
    plan.add({"passing activations", "gradients of activations",
              static_cast<uint64_t>(plan_.passing_bytes)});
    plan.add(
        {"forward scratch", "scratch", forward_bytes(descriptions_), Life::scratch, "forward"});
    plan.add(
        {"backward scratch", "scratch", backward_bytes(descriptions_), Life::scratch, "backward"});
    return;
  }
  plan.add(
      {"forward scratch", "scratch", inference_bytes(descriptions_), Life::scratch, "forward"});
  const uint64_t hidden_bytes =
      rows * static_cast<uint64_t>(model_.config.hidden * dtype_bytes(setup_.compute));
  for (const char* name : {"hidden 0", "hidden 1"})
    plan.add({name, "activations", hidden_bytes, Life::scratch, "forward"});
  const uint64_t cache_bytes =
      static_cast<uint64_t>(setup_.sequences * model_.config.kv_width() * setup_.positions) *
      static_cast<uint64_t>(dtype_bytes(setup_.compute));
  for (int64_t layer = 0; setup_.sequences > 0 && layer < model_.config.layers; ++layer)
    for (const char* what : {"keys", "values"})
      plan.add({fmt::format("layers.{}.{}", layer, what), "key/value cache", cache_bytes});
}

void Executor::bind(Arena& arena, Arena& host) {
  const Shape rows{setup_.shape.rows() * micros_};
  if (takes(false)) ids_ = arena.take("ids", DType::i32, rows);
  if (takes(true)) targets_ = arena.take("targets", DType::i32, rows);
  if (setup_.document_mask) first_keys_ = arena.take("documents", DType::i32, rows);
  loss_sums_ = arena.take("losses", DType::f64, Shape{static_cast<int64_t>(losses_.size())});
  exact_ = (exact_tier() == Tier::host ? host : arena)
               .take("exact sum", DType::i64, Shape{ExactSum::size});
  if (setup_.purpose == Purpose::training) {
    step_state_ = take_bytes(arena, "step state", sizeof(StepState));
    optimizer_state_ = exact_tier() == Tier::host
                           ? take_bytes(host, "optimizer step state", sizeof(StepState))
                           : step_state_;
  }
  ops_.set_workspace(take_bytes(arena, "workspace", workspace_bytes()));
  if (model_.config.position == PositionKind::rope) {
    rope_ = arena.take("rope table", DType::f32, Shape{setup_.positions, model_.config.head_dim});
    const std::vector<float> table = rope_table(model_.config, setup_.positions);
    ops_.upload(table.data(), rope_);
  }
  buffers_.assign(descriptions_.size(), {});
  places_.assign(descriptions_.size() * static_cast<size_t>(micros_), {});
  if (setup_.purpose == Purpose::training)
    bind_training(arena, host);
  else
    bind_inference(arena);
}

// What leaves for its tier has two places, the forward's and the backward's; other tensors one.
// What is recomputed lies behind what is saved, elsewhere in the forward than in the backward.
void Executor::bind_saved(const std::vector<Stay>& stays, const Tensor& pool) {
  struct Begins {
    char *input = nullptr, *saved = nullptr, *recomputed = nullptr;
  };
  std::vector<Begins> forward(places_.size()), backward(places_.size());
  for (const Stay& stay : stays) {
    const size_t index =
        static_cast<size_t>(stay.micro) * descriptions_.size() + static_cast<size_t>(stay.block);
    char* const begin = bytes_of(pool, stay.offset);
    switch (stay.kind) {
      case StayKind::input:
        forward[index].input = begin;
        break;
      case StayKind::saved:
        forward[index].saved = begin;
        break;
      case StayKind::passed_over:
        forward[index].recomputed = begin;
        break;
      case StayKind::input_again:
        backward[index].input = begin;
        break;
      case StayKind::saved_again:
        backward[index].saved = begin;
        break;
      case StayKind::recomputed:
        backward[index].recomputed = begin;
        break;
      default:
        expect(stay.kind == StayKind::output_gradient, "the pool of what is saved holds such");
        places_[index].output_gradient = {
            begin, descriptions_[static_cast<size_t>(stay.block)].output.dtype,
            descriptions_[static_cast<size_t>(stay.block)].output.shape, pool.device};
    }
  }
  const auto tensors = [&pool](const Begins& at, const BlockDescription& d) {
    std::vector<Tensor> out;
    if (d.saved.empty()) return out;
    out.push_back({at.input, d.saved[0].dtype, d.saved[0].shape, pool.device});
    cut({at.saved, pool.device}, std::span(d.saved).subspan(1), out);
    cut({at.recomputed, pool.device}, d.recomputed, out);
    return out;
  };
  for (size_t i = 0; i < places_.size(); ++i) {
    const BlockDescription& d = descriptions_[i % descriptions_.size()];
    Begins &there = forward[i], &back = backward[i];
    if (back.input == nullptr) back.input = there.input;
    if (back.saved == nullptr) back.saved = there.saved;
    if (back.recomputed == nullptr) back.recomputed = there.recomputed;
    places_[i].saved_in_forward = tensors(there, d);
    places_[i].saved = tensors(back, d);
  }
}

void Executor::bind_passing(const std::vector<Stay>& stays, const Tensor& pool) {
  for (const Stay& stay : stays) {
    const BlockDescription& d = descriptions_[static_cast<size_t>(stay.block)];
    Place& at = place(static_cast<size_t>(stay.block), stay.micro);
    char* const begin = bytes_of(pool, stay.offset);
    const auto one = [&](const TensorSpec& spec) {
      return Tensor{begin, spec.dtype, spec.shape, pool.device};
    };
    switch (stay.kind) {
      case StayKind::pending:
        cut({begin, pool.device}, d.pending, at.pending);
        break;
      case StayKind::output:
        at.output = one(d.output);
        break;
      default:
        expect(stay.kind == StayKind::input_gradient, "the pool of what passes holds such");
        at.input_gradient = one(d.saved[0]);
    }
  }
}

// What a STORE and its FETCH copy: the stays of a block's input and of what else it saves, which
// lie one behind the other in their slot.
void Executor::bind_pieces(const Tensor& pool) {
  for (const Stay& slot : plan_.activations.stored) {
    ActivationTier::Pieces& pieces = place(static_cast<size_t>(slot.block), slot.micro).pieces;
    int64_t offset = slot.offset;
    for (const auto& [there, back] : {std::pair{StayKind::input, StayKind::input_again},
                                      {StayKind::saved, StayKind::saved_again}}) {
      const auto find = [&](StayKind kind) {
        return std::ranges::find_if(plan_.activations.saved, [&](const Stay& stay) {
          return stay.kind == kind && stay.block == slot.block && stay.micro == slot.micro;
        });
      };
      const auto first = find(there), second = find(back);
      if (first == plan_.activations.saved.end()) continue;
      pieces.push_back(
          {bytes_of(pool, first->offset), bytes_of(pool, second->offset), offset, first->bytes});
      offset += first->bytes;
    }
  }
}

void Executor::bind_training(Arena& arena, Arena& host) {
  const Tensor forward_pool = take_bytes(arena, "forward scratch", forward_bytes(descriptions_));
  const Tensor backward_pool = take_bytes(arena, "backward scratch", backward_bytes(descriptions_));
  Tensor saved = take_bytes(arena, "activations", saved_bytes());
  if (tier_ != nullptr && tier_->on_disk()) saved.data = page_aligned(saved.data);
  bind_saved(plan_.activations.saved, saved);
  bind_passing(plan_.activations.passing, take_bytes(arena, "passing activations",
                                                     static_cast<uint64_t>(plan_.passing_bytes)));
  if (tier_ != nullptr) {
    tier_->bind(host, ops_);
    bind_pieces(saved);
  }
  for (size_t b = 0; b < descriptions_.size(); ++b) {
    cut(from(forward_pool), descriptions_[b].forward_scratch, buffers_[b].forward_scratch);
    cut(from(backward_pool), descriptions_[b].backward_scratch, buffers_[b].backward_scratch);
  }
}

void Executor::bind_inference(Arena& arena) {
  const Shape hidden{setup_.shape.rows(), model_.config.hidden};
  const Tensor pool = take_bytes(arena, "forward scratch", inference_bytes(descriptions_));
  const Tensor inputs[2] = {arena.take("hidden 0", setup_.compute, hidden),
                            arena.take("hidden 1", setup_.compute, hidden)};
  for (size_t b = 0; b < descriptions_.size(); ++b) {
    const BlockDescription& block = descriptions_[b];
    cut(from(pool), block.forward_scratch, buffers_[b].forward_scratch);
    if (block.saved.empty()) continue;
    std::vector<Tensor>& saved = place(b, 0).saved_in_forward;
    saved.push_back(inputs[b % 2]);
    cut(from(pool, static_cast<int64_t>(total_bytes(block.forward_scratch))),
        std::span(block.saved).subspan(1), saved);
    expect(block.recomputed.empty(), "inference has nothing to recompute");
    place(b, 0).saved = saved;
  }
  const ModelConfig& c = model_.config;
  used_caches_.reserve(static_cast<size_t>(setup_.sequences));
  for (int64_t layer = 0; setup_.sequences > 0 && layer < c.layers; ++layer) {
    const Shape one{c.kv_heads, setup_.positions, c.head_dim};
    const Shape all{setup_.sequences, one.elements()};
    const std::string name = fmt::format("layers.{}.", layer);
    const Tensor keys = arena.take(name + "keys", setup_.compute, all),
                 values = arena.take(name + "values", setup_.compute, all);
    for (int64_t slot = 0; slot < setup_.sequences; ++slot)
      caches_.push_back({0, keys.rows(slot, 1).as(one), values.rows(slot, 1).as(one)});
  }
}

}  // namespace rankine

#include "state/param_store.h"

#include <algorithm>

namespace rankine {
namespace {

constexpr int64_t alignment = 64;  // elements

int64_t stored_elements(const ParamSpec& spec) {
  return spec.shape[0] == 0 ? 0 : spec.shape.elements() / spec.shape[0] * spec.stored_rows;
}

}  // namespace

ParamStore::ParamStore(std::span<const BlockDescription> blocks, DType compute, Purpose purpose)
    : compute_(compute), purpose_(purpose) {
  for (const BlockDescription& block : blocks) lay_out(block.parameters, blocks_.emplace_back());
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (blocks[b].tied.empty()) continue;
    const auto owner = std::find_if(groups_.begin(), groups_.end(),
                                    [&](const Entry& e) { return e.spec.name == blocks[b].tied; });
    expect(owner != groups_.end(), "a tied parameter has an owner");
    blocks_[b].groups.push_back(static_cast<size_t>(owner - groups_.begin()));
  }
}

void ParamStore::lay_out(std::span<const ParamSpec> specs, BlockViews& views) {
  const size_t first_group = groups_.size();
  for (const ParamSpec& group : joined_groups(specs)) {
    views.groups.push_back(groups_.size());
    groups_.push_back({group, 0});
  }
  for (const bool decay : {true, false}) {
    const int64_t begin = elements_;
    for (size_t g = first_group; g < groups_.size(); ++g) {
      if (groups_[g].spec.decay != decay) continue;
      groups_[g].offset = elements_;
      elements_ += (stored_elements(groups_[g].spec) + alignment - 1) / alignment * alignment;
    }
    if (elements_ > begin) ranges_.push_back({begin, elements_ - begin, decay});
  }
  int64_t offset = 0;
  size_t group = first_group;
  for (const ParamSpec& spec : specs) {
    if (!spec.joined) offset = groups_[group++].offset;
    entries_.push_back({spec, offset});
    offset += stored_elements(spec);
  }
}

void ParamStore::add_to(MemoryPlan& plan) const {
  const auto f32_bytes = static_cast<uint64_t>(elements_) * 4;
  const bool copy = compute_ != DType::f32;
  plan.add({"weights", copy ? "master weights" : "parameters", f32_bytes});
  if (copy)
    plan.add(
        {"parameters", "parameters", static_cast<uint64_t>(elements_ * dtype_bytes(compute_))});
  if (purpose_ == Purpose::inference) return;
  plan.add({"gradients", "gradients", f32_bytes});
  plan.add({"momentum", "optimizer states", f32_bytes});
  plan.add({"variance", "optimizer states", f32_bytes});
}

void ParamStore::bind(Arena& arena) {
  const Shape flat{elements_};
  weights_ = arena.take("weights", DType::f32, flat);
  computed_ = compute_ == DType::f32 ? weights_ : arena.take("parameters", compute_, flat);
  if (purpose_ == Purpose::training) {
    gradients_ = arena.take("gradients", DType::f32, flat);
    momentum_ = arena.take("momentum", DType::f32, flat);
    variance_ = arena.take("variance", DType::f32, flat);
  }
  for (BlockViews& block : blocks_)
    for (const size_t g : block.groups) {
      const Entry& group = groups_[g];
      const Shape stored = group.spec.shape.with(0, group.spec.stored_rows);
      const int64_t count = stored.elements();
      block.params.push_back(computed_.range(group.offset, count).as(stored));
      if (purpose_ == Purpose::training)
        block.grads.push_back(gradients_.range(group.offset, count).as(stored));
    }
}

void ParamStore::initialise(Ops& ops, uint64_t seed) {
  for (const Entry& entry : entries_) {
    const Tensor x = weights_.range(entry.offset, entry.spec.shape.elements());
    switch (entry.spec.init) {
      case Init::zeros:
        ops.fill(x, 0);
        break;
      case Init::ones:
        ops.fill(x, 1);
        break;
      case Init::normal:
        ops.fill_normal(x, random_key(seed, "init " + entry.spec.name), 0, entry.spec.std);
        break;
    }
  }
  refresh_compute(ops);
}

void ParamStore::refresh_compute(Ops& ops) {
  if (compute_ != DType::f32) ops.cast(weights_, computed_);
}

std::vector<NamedTensor> ParamStore::named(const Tensor& flat) const {
  expect(!flat.empty(), "the states asked for are held");
  std::vector<NamedTensor> out;
  for (const Entry& entry : entries_) {
    const Shape& shape = entry.spec.shape;
    out.push_back({entry.spec.name, shape, whole(shape),
                   flat.range(entry.offset, shape.elements()).as(shape)});
  }
  return out;
}

void ParamStore::sum_squared_gradients(Ops& ops, Tensor total) const {
  ops.sum_squares(gradients_, total, false);
}

void ParamStore::update(Ops& ops, const AdamWStep& step) {
  for (const Range& range : ranges_) {
    AdamWStep part = step;
    if (!range.decay) part.weight_decay = 0;
    const auto cut = [&](const Tensor& flat) { return flat.range(range.first, range.count); };
    ops.adamw(part, cut(weights_), cut(gradients_), cut(momentum_), cut(variance_),
              compute_ == DType::f32 ? Tensor{} : cut(computed_));
  }
}

}  // namespace rankine

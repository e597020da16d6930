#include "state/param_store.h"

#include <algorithm>

namespace rankine {
namespace {

// With one rank on the axis its shard is the whole: there is nothing to cut or to gather.
StoreSetup effective(StoreSetup setup, const Communicator& data) {
  if (data.size() == 1) setup.zero = {};
  return setup;
}

int owners_of(const StoreSetup& setup, const Communicator& data) {
  return setup.zero.optimizer == Held::shard ? data.size() : 1;
}

int64_t shard_unit_of(const StoreSetup& setup) {
  return setup.offload.optimizer == Offload::disk ? DiskStates::shard_unit : ParamLayout::alignment;
}

}  // namespace

ParamStore::ParamStore(std::span<const BlockDescription> blocks, const StoreSetup& setup,
                       const StateRanks& ranks, const TiedCopy* tied)
    : setup_(effective(setup, ranks.data)),
      ranks_(ranks),
      layout_(blocks, owners_of(setup_, ranks.data),
              owners_of(setup_, ranks.data) == 1 ? 0 : ranks.data.rank(), shard_unit_of(setup_)),
      tied_(setup.purpose == Purpose::training ? tied : nullptr),
      disk_(setup_.offload.optimizer == Offload::disk ? std::make_unique<DiskStates>(layout_)
                                                      : nullptr),
      sums_(layout_, {setup_.zero, setup_.micros, setup_.strict, setup_.offload.optimizer}, ranks,
            disk_.get()),
      views_(blocks.size()),
      uses_(blocks.size()) {
  for (size_t b = 0; b < blocks.size(); ++b) {
    const std::vector<size_t>& groups = layout_.blocks()[b].groups;
    views_[b].params.resize(groups.size());
    views_[b].grads.resize(setup_.purpose == Purpose::training ? groups.size() : 0);
    for (size_t i = 0; i < groups.size(); ++i)
      uses_[layout_.block_of(groups[i])].emplace_back(b, i);
  }
}

void ParamStore::reserve_pools(int64_t gathered_bytes, int64_t gradient_bytes) {
  gathered_bytes_ = gathered_bytes;
  sums_.reserve_pool(gradient_bytes);
}

void ParamStore::add_to(MemoryPlan& plan) const {
  const auto whole = static_cast<uint64_t>(layout_.elements());
  const auto owned = static_cast<uint64_t>(layout_.owned());
  const Tier tier = tier_of(setup_.offload.optimizer);
  if (on_disk())
    disk_->add_to(plan);
  else
    plan.add({"weights", copies() ? "master weights" : "parameters",
              (weights_whole() ? whole : owned) * 4, Life::permanent, "", tier});
  if (copies())
    plan.add(
        {"parameters", "parameters",
         (params_whole() ? whole : owned) * static_cast<uint64_t>(dtype_bytes(setup_.compute))});
  if (!params_whole())
    plan.add(
        {"gathered parameters", "gathered parameters", static_cast<uint64_t>(gathered_bytes_)});
  if (setup_.purpose == Purpose::inference) return;
  sums_.add_to(plan);
  if (tied_ != nullptr)
    plan.add({"tied sum", "operations", static_cast<uint64_t>(TiedCopy::chunk_elements) * 4});
  if (on_disk()) return;
  for (const char* name : {"momentum", "variance"})
    plan.add({name, "optimizer states", owned * 4, Life::permanent, "", tier});
}

void ParamStore::bind(Arena& arena, Arena& host, Ops& ops) {
  ops_ = &ops;
  Arena& states = offloads() ? host : arena;
  const Shape whole{layout_.elements()}, owned{layout_.owned()};
  if (on_disk())
    disk_->bind(setup_.offload, host);
  else
    weights_ = states.take("weights", DType::f32, weights_whole() ? whole : owned);
  computed_ = copies() ? arena.take("parameters", setup_.compute, params_whole() ? whole : owned)
                       : weights_;
  if (!params_whole())
    gathered_ = arena.take("gathered parameters", DType::u8, Shape{gathered_bytes_});
  if (setup_.purpose == Purpose::training) {
    sums_.bind(arena, host, ops);
    if (tied_ != nullptr)
      tied_scratch_ = arena.take("tied sum", DType::f32, Shape{TiedCopy::chunk_elements});
    if (!on_disk()) {
      momentum_ = states.take("momentum", DType::f32, owned);
      variance_ = states.take("variance", DType::f32, owned);
    }
  }
  for (size_t b = 0; b < views_.size(); ++b) {
    const ParamLayout::BlockLayout& block = layout_.blocks()[b];
    if (params_whole()) show(b, computed_.range(block.offset, block.elements), &BlockViews::params);
    if (setup_.purpose == Purpose::training && !sums_.pooled())
      show(b, sums_.begin(b, 0), &BlockViews::grads);
  }
}

// Points every view of a block's parameters (or gradients) into `values` [block elements].
void ParamStore::show(size_t block, const Tensor& values, std::vector<Tensor> BlockViews::*views) {
  for (const auto& [user, index] : uses_[block]) {
    const ParamLayout::Entry& group = layout_.groups()[layout_.blocks()[user].groups[index]];
    const Shape stored = group.spec.stored();
    (views_[user].*views)[index] =
        values.range(group.offset - layout_.blocks()[block].offset, stored.elements()).as(stored);
  }
}

// This rank's shard of a block within a flat buffer that holds everything, or only what is owned.
Tensor ParamStore::own_part(const Tensor& flat, const ParamLayout::BlockLayout& block,
                            bool whole) const {
  if (!whole) return flat.range(block.owned_offset, block.shard);
  const int64_t before = layout_.owners() == 1 ? 0 : ranks_.data.rank() * block.shard;
  return flat.range(block.offset + before, block.shard);
}

std::vector<NamedTensor> ParamStore::weights(Copies copies) const {
  if (on_disk()) return layout_.pieces(disk_->mapped(DiskStates::weights), false, copies);
  return layout_.pieces(weights_, weights_whole(), copies);
}

std::string ParamStore::offload_description() const {
  if (on_disk()) return disk_->description();
  return offloads() ? "in host memory" : "";
}

void ParamStore::initialise(uint64_t seed) {
  for (const NamedTensor& piece : weights()) {
    const auto spec = std::ranges::find_if(
        layout_.entries(), [&](const ParamLayout::Entry& e) { return e.spec.name == piece.name; });
    switch (spec->spec.init) {
      case Init::zeros:
        ops_->fill(piece.data, 0);
        break;
      case Init::ones:
        ops_->fill(piece.data, 1);
        break;
      case Init::normal:
        // Runs that are contiguous in the whole tensor too.
        for_each_shared_run(whole(piece.shape), piece.box,
                            [&](int64_t global, int64_t local, int64_t count) {
                              ops_->fill_normal(piece.data.range(local, count),
                                                random_key(seed, "init " + piece.name),
                                                static_cast<uint64_t>(global), spec->spec.std);
                            });
        break;
    }
  }
  refresh_compute();
}

void ParamStore::refresh_compute() {
  const Tensor weights = on_disk() ? disk_->mapped(DiskStates::weights) : weights_;
  for (size_t b = 0; b < views_.size(); ++b) {
    const ParamLayout::BlockLayout& block = layout_.blocks()[b];
    if (copies())
      ops_->cast(own_part(weights, block, false), own_part(computed_, block, params_whole()));
    if (params_whole()) refresh(b);
  }
  for (size_t b = 0; b < views_.size(); ++b) wait_parameters(b);
}

void ParamStore::gather(size_t block, int64_t offset) {
  const ParamLayout::BlockLayout& b = layout_.blocks()[block];
  const int64_t bytes = b.elements * dtype_bytes(setup_.compute);
  const Tensor whole{gathered_.range(offset, bytes).data, setup_.compute, Shape{b.elements},
                     gathered_.device};
  show(block, whole, &BlockViews::params);
  views_[block].arriving =
      ranks_.data.all_gather(own_part(computed_, b, false), whole, "parameters");
}

void ParamStore::release(size_t block) {
  wait_parameters(block);
}

void ParamStore::refresh(size_t block) {
  if (layout_.owners() == 1) return;
  const ParamLayout::BlockLayout& b = layout_.blocks()[block];
  views_[block].arriving = ranks_.data.all_gather(
      own_part(computed_, b, true), computed_.range(b.offset, b.elements), "parameters");
}

void ParamStore::wait_parameters(size_t block) {
  views_[block].arriving.wait();
}

void ParamStore::begin_gradients(size_t block, int64_t offset) {
  show(block, sums_.begin(block, offset), &BlockViews::grads);
}

void ParamStore::reduce(size_t block) {
  sums_.reduce(block);
}

void ParamStore::finish_reductions() {
  sums_.finish();
  if (tied_ == nullptr) return;
  const int owner = layout_.owners() == 1 ? 0 : ranks_.data.rank();
  const auto use_of = [&](int block) {
    if (block == TiedCopy::none) return TiedCopy::Use{};
    const auto b = static_cast<size_t>(block);
    return TiedCopy::Use{on_disk() ? disk_->open(b, DiskStates::gradients) : sums_.result(b),
                         owner * layout_.blocks()[b].shard};
  };
  tied_->add(use_of(tied_->embedding_block), use_of(tied_->head_block), *ops_, tied_scratch_);
  if (on_disk()) disk_->close();
}

void ParamStore::sum_squares(size_t b, const Tensor& gradients, const Tensor& exact) const {
  const ParamLayout::BlockLayout& block = layout_.blocks()[b];
  for (const ParamLayout::Range& range : block.ranges)
    if (range.counted)
      ops_->sum_squares(gradients.range(range.first - block.owned_offset, range.count), exact);
}

void ParamStore::sum_squared_gradients(Tensor exact) const {
  if (!counts()) return;
  using D = DiskStates;
  if (on_disk())
    return disk_->for_each_block({.read = {D::gradients},
                                  .written = {},
                                  .visit = [&](size_t b, std::span<const Tensor> parts) {
                                    sum_squares(b, parts[D::gradients], exact);
                                  }});
  for (size_t b = 0; b < views_.size(); ++b) sum_squares(b, sums_.result(b), exact);
}

void ParamStore::update_block(const AdamWStep& step, size_t b, const BlockStates& states) {
  const ParamLayout::BlockLayout& block = layout_.blocks()[b];
  const Tensor computed = copies() ? own_part(computed_, block, params_whole()) : Tensor{};
  const bool rounded = setup_.compute != DType::f32;
  for (const ParamLayout::Range& range : block.ranges) {
    AdamWStep part = step;
    if (!range.decay) part.weight_decay = 0;
    const auto of = [&](const Tensor& t) {
      return t.range(range.first - block.owned_offset, range.count);
    };
    ops_->adamw(part, of(states.weights), of(states.gradients), of(states.momentum),
                of(states.variance), rounded ? of(computed) : Tensor{});
  }
  if (copies() && !rounded) ops_->cast(states.weights, computed);
}

void ParamStore::update(const AdamWStep& step) {
  using D = DiskStates;
  if (on_disk())
    return disk_->for_each_block({.read = {D::weights, D::momentum, D::variance, D::gradients},
                                  .written = {D::weights, D::momentum, D::variance},
                                  .visit = [&](size_t b, std::span<const Tensor> parts) {
                                    update_block(step, b,
                                                 {parts[D::weights], parts[D::gradients],
                                                  parts[D::momentum], parts[D::variance]});
                                  }});
  for (size_t b = 0; b < views_.size(); ++b) {
    const ParamLayout::BlockLayout& block = layout_.blocks()[b];
    update_block(step, b,
                 {own_part(weights_, block, weights_whole()), sums_.result(b),
                  momentum_.range(block.owned_offset, block.shard),
                  variance_.range(block.owned_offset, block.shard)});
  }
}

}  // namespace rankine

#include <utility>

#include "state/param_store.h"

// What a store does during a step: parameters come and go, gradients leave, the optimizer updates.
namespace rankine {

namespace {

using D = DiskStates;

constexpr unsigned bit(size_t part) {
  return 1u << part;
}

}  // namespace

// ---- blocks

ParamStore::BlockStates ParamStore::states_of(size_t b, std::span<const Tensor> staged) const {
  const ParamLayout::BlockLayout& block = layout_.blocks()[b];
  const bool on_disk = optimizer_on(Offload::disk);
  const auto part = [&](size_t number) { return staged.empty() ? Tensor{} : staged[number]; };
  BlockStates states;
  states.weights = weights_tier() == Tier::disk ? part(weights_part())
                                                : own_part(weights_, block, weights_whole());
  if (setup_.purpose == Purpose::training) {
    states.gradients = on_disk ? part(D::gradients) : sums_.result(b);
    states.momentum =
        on_disk ? part(D::momentum) : momentum_.range(block.owned_offset, block.shard);
    states.variance =
        on_disk ? part(D::variance) : variance_.range(block.owned_offset, block.shard);
  }
  if (copies())
    states.computed = parameters_on(Offload::disk) ? part(D::parameters)
                                                   : own_part(computed_, block, params_whole());
  return states;
}

template <class Visit>
void ParamStore::visit_blocks(const BlockPass& pass, const Visit& visit) const {
  DiskStaging::Pass staged{.backwards = pass.backwards};
  for (size_t part = 0; disk_ != nullptr && part <= D::gradients; ++part) {
    if (!disk_->holds(part)) continue;
    if ((pass.read & bit(part)) != 0) staged.read.push_back(part);
    if ((pass.written & bit(part)) != 0) staged.written.push_back(part);
  }
  if (!staged.read.empty() || !staged.written.empty()) {
    staged.visit = [&](size_t b, std::span<const Tensor> parts) { visit(b, states_of(b, parts)); };
    return pass.staging->for_each_block(staged);
  }
  const size_t count = views_.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t b = pass.backwards ? count - 1 - i : i;
    visit(b, states_of(b, {}));
  }
}

// ---- parameters

void ParamStore::begin_parameters(size_t block, int64_t offset) {
  const ParamLayout::BlockLayout& b = layout_.blocks()[block];
  views_[block].gathered = {static_cast<char*>(gathered_.data) + offset, setup_.compute,
                            Shape{b.elements}, gathered_.device};
  show(block, views_[block].gathered, &BlockViews::params);
}

void ParamStore::load(size_t block) {
  BlockViews& view = views_[block];
  view.arriving.lead(ops_->queue());  // what a step before has collected
  const ParamLayout::BlockLayout& b = layout_.blocks()[block];
  const Tensor to =
      params_whole() ? view.gathered : view.gathered.range(ranks_.data.rank() * b.shard, b.shard);
  if (parameters_on(Offload::disk)) {
    if (std::exchange(completing_, false)) staging_->settle();
    view.loading = disk_->start_read(D::parameters, block, to.data);
    return;
  }
  const int64_t first = params_whole() ? b.offset : b.owned_offset;
  view.loading =
      host_parameters_->start_read(static_cast<uint64_t>(first * dtype_bytes(setup_.compute)),
                                   to.data, static_cast<uint64_t>(to.bytes()));
}

void ParamStore::gather(size_t block) {
  BlockViews& view = views_[block];
  view.loading.lead(ops_->queue());
  const ParamLayout::BlockLayout& b = layout_.blocks()[block];
  const Tensor own = loads() ? view.gathered.range(ranks_.data.rank() * b.shard, b.shard)
                             : own_part(computed_, b, false);
  view.arriving = ranks_.data.all_gather(own, view.gathered, "parameters");
}

void ParamStore::release(size_t block) {
  lead_parameters(block);
}

void ParamStore::refresh(size_t block) {
  if (layout_.owners() == 1) return;
  const auto collect_into = [this](const Tensor& own, const Tensor& all) {
    return ranks_.data.all_gather(own, all, "parameters");
  };
  if (parameters_on(Offload::disk)) {
    completing_ = true;
    return staging_->complete(
        block, [&](const Tensor& own, const Tensor& all) { collect_into(own, all).wait(); });
  }
  const ParamLayout::BlockLayout& b = layout_.blocks()[block];
  views_[block].arriving =
      collect_into(own_part(computed_, b, true), computed_.range(b.offset, b.elements));
}

void ParamStore::lead_parameters(size_t block) {
  views_[block].loading.lead(ops_->queue());
  views_[block].arriving.lead(ops_->queue());
}

void ParamStore::wait_parameters(size_t block) {
  lead_parameters(block);
  ops_->queue().mark().wait();
}

void ParamStore::wait_all_parameters() {
  for (size_t b = 0; b < views_.size(); ++b) wait_parameters(b);
}

void ParamStore::refresh_compute() {
  release_pieces();
  round_weights();
  collect();
}

void ParamStore::round_weights() {
  if (copies())
    visit_blocks({staging_.get(), bit(D::weights), bit(D::parameters)},
                 [this](size_t, const BlockStates& states) {
                   const Tensor computed = brought(states.computed, false);
                   optimizer_ops().cast(states.weights, computed);
                   put_back(computed, states.computed);
                 });
  lags_ = false;
}

void ParamStore::collect() {
  if (!params_whole()) return;
  for (size_t b = 0; b < views_.size(); ++b) refresh(b);
  wait_all_parameters();
}

// ---- gradients

void ParamStore::begin_gradients(size_t block, int64_t offset) {
  show(block, sums_.begin(block, offset), &BlockViews::grads);
}

void ParamStore::reduce(size_t block) {
  // The sums of the step before may still be needed.
  if (pending_ != nullptr) pending_->wait_read(block);
  sums_.reduce(block);
}

void ParamStore::finish_reductions() {
  sums_.finish();
  if (tied_ == nullptr) return;
  const int owner = layout_.owners() == 1 ? 0 : ranks_.data.rank();
  const bool on_disk = optimizer_on(Offload::disk);
  const auto use_of = [&](int block) {
    if (block == TiedCopy::none) return TiedCopy::Use{};
    const auto b = static_cast<size_t>(block);
    return TiedCopy::Use{on_disk ? staging_->open(b, D::gradients) : sums_.result(b),
                         owner * layout_.blocks()[b].shard};
  };
  tied_->add(use_of(tied_->embedding_block), use_of(tied_->head_block), optimizer_ops(),
             tied_scratch_);
  if (on_disk) staging_->close();
}

void ParamStore::sum_squared_gradients(Tensor exact) {
  const ExactSum before = sums_.take_squares();
  if (!counts()) return;
  if (optimizer_on(Offload::disk)) {
    ExactSum total;
    optimizer_ops().download(exact, total.parts().data());
    total.add(before);
    optimizer_ops().upload(total.parts().data(), exact);
  }
  for (size_t b = 0; b < views_.size(); ++b)
    if (!optimizer_on(Offload::disk))
      sums_.add_squares(b, sums_.result(b), exact);
    else if (!sums_.has_squares(b))
      staging_->with_block(
          b, {.read = {D::gradients}, .visit = [&](size_t, std::span<const Tensor> staged) {
                sums_.add_squares(b, staged[D::gradients], exact);
              }});
}

// ---- updates

void ParamStore::update_block(const AdamWStep& step, size_t b, const BlockStates& states) const {
  const ParamLayout::BlockLayout& block = layout_.blocks()[b];
  const bool rounded = setup_.compute != DType::f32 && !states.computed.empty();
  Ops& ops = optimizer_ops();
  const Tensor weights = brought(states.weights, true), computed = brought(states.computed, false);
  for (const ParamLayout::Range& range : block.ranges) {
    AdamWStep part = step;
    if (!range.decay) part.weight_decay = 0;
    const auto of = [&](const Tensor& t) {
      return t.range(range.first - block.owned_offset, range.count);
    };
    ops.adamw(part, of(weights), of(states.gradients), of(states.momentum), of(states.variance),
              rounded ? of(computed) : Tensor{});
  }
  if (!computed.empty() && !rounded) ops.cast(weights, computed);
  put_back(weights, states.weights);
  put_back(computed, states.computed);
}

Tensor ParamStore::brought(const Tensor& tensor, bool read) const {
  Ops& ops = optimizer_ops();
  if (tensor.empty() || tensor.device == ops.device().kind()) return tensor;
  const Tensor there{crossing_.data, tensor.dtype, tensor.shape, crossing_.device};
  expect(tensor.bytes() <= crossing_.bytes(), "what crosses fits its memory");
  ops.queue().follow(ops_->queue().mark());  // what was there has left
  if (read) {
    ops_->queue().copy(there.data, tensor.data, static_cast<uint64_t>(tensor.bytes()));
    ops.queue().follow(ops_->queue().mark());
  }
  return there;
}

void ParamStore::put_back(const Tensor& there, const Tensor& tensor) const {
  if (there.data == tensor.data) return;
  ops_->queue().follow(optimizer_ops().queue().mark());
  ops_->queue().copy(tensor.data, there.data, static_cast<uint64_t>(tensor.bytes()));
}

void ParamStore::update(const AdamWStep& step) {
  // One way through the disk's staging memory is enough.
  if (update_staging_ != nullptr) {
    start_update(step);
    return publish();
  }
  const unsigned adam = bit(weights_part()) | bit(D::momentum) | bit(D::variance);
  visit_blocks({staging_.get(), adam | bit(D::gradients), adam | bit(D::parameters)},
               [&](size_t b, const BlockStates& states) { update_block(step, b, states); });
}

// From the last block to the first, whose gradients come first in the step beside it.
void ParamStore::start_update(const AdamWStep& step) {
  expect(pending_ != nullptr && copies(), "a delayed update has a copy to compute with");
  lags_ = true;
  pending_->start(views_.size(), [this, step](const PendingUpdate::Read& read) {
    const unsigned adam = bit(D::weights) | bit(D::momentum) | bit(D::variance);
    visit_blocks({update_staging_.get(), adam | bit(D::gradients), adam, true},
                 [&](size_t b, BlockStates states) {
                   states.computed = {};
                   update_block(step, b, states);
                   read(b);
                 });
  });
}

void ParamStore::publish() {
  if (!lags_) return;
  pending_->finish();
  round_weights();
}

void ParamStore::restore_lag() {
  release_pieces();
  collect();
  lags_ = true;
}

}  // namespace rankine

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

GradientSums::Setup sums_setup(const StoreSetup& setup) {
  return {setup.zero, setup.micros, setup.strict, setup.offload.optimizer, setup.apart};
}

}  // namespace

ParamStore::ParamStore(std::span<const BlockDescription> blocks, const StoreSetup& setup,
                       const StateRanks& ranks, const TiedCopy* tied)
    : setup_(effective(setup, ranks.data)),
      ranks_(ranks),
      layout_(blocks, owners_of(setup_, ranks.data),
              owners_of(setup_, ranks.data) == 1 ? 0 : ranks.data.rank(),
              shard_unit(setup_.offload, setup_.compute)),
      tied_(setup.purpose == Purpose::training ? tied : nullptr),
      disk_(optimizer_on(Offload::disk) || parameters_on(Offload::disk)
                ? std::make_unique<DiskStates>(layout_, disk_setup())
                : nullptr),
      staging_(make_staging()),
      sums_(layout_, sums_setup(setup_), ranks, staging_.get()),
      views_(blocks.size()),
      uses_(blocks.size()) {
  using D = DiskStates;
  if (setup_.offload.delayed_update > 0) {
    pending_ = std::make_unique<PendingUpdate>();
    if (optimizer_on(Offload::disk))
      update_staging_ = std::make_unique<DiskStaging>(
          *disk_, "delayed update",
          DiskStaging::Parts{D::weights, D::momentum, D::variance, D::gradients});
  }
  if (tied_ != nullptr)
    for (const int block : {tied_->embedding_block, tied_->head_block})
      if (block != TiedCopy::none) sums_.squares_come_later(static_cast<size_t>(block));
  for (size_t b = 0; b < blocks.size(); ++b) {
    const std::vector<size_t>& groups = layout_.blocks()[b].groups;
    views_[b].params.resize(groups.size());
    views_[b].grads.resize(setup_.purpose == Purpose::training ? groups.size() : 0);
    for (size_t i = 0; i < groups.size(); ++i)
      uses_[layout_.block_of(groups[i])].emplace_back(b, i);
  }
}

// In f32 the parameters are the master weights where both lie in one tier and change at one time.
bool ParamStore::copies() const {
  const OffloadSetup& offload = setup_.offload;
  return setup_.compute != DType::f32 || offload.delayed_update > 0 ||
         (offload.optimizer != Offload::none && offload.optimizer != offload.parameters);
}

bool ParamStore::crosses() const {
  const OffloadSetup& offload = setup_.offload;
  const bool on_host = offload.optimizer != Offload::none,
             parameters_on_host = offload.parameters != Offload::none;
  return setup_.apart && on_host != parameters_on_host;
}

uint64_t ParamStore::crossing_bytes() const {
  int64_t most = 0;
  for (const ParamLayout::BlockLayout& block : layout_.blocks()) most = std::max(most, block.shard);
  return static_cast<uint64_t>(most) * 4;
}

DiskStates::Setup ParamStore::disk_setup() const {
  const bool optimizer = optimizer_on(Offload::disk);
  return {.weights = optimizer && copies(),
          .moments = optimizer,
          .gradient_levels = GradientSums::levels(sums_setup(setup_)),
          .parameters = parameters_on(Offload::disk),
          .compute = setup_.compute,
          .whole = params_whole(),
          .owner = layout_.owners() == 1 ? 0 : ranks_.data.rank()};
}

std::unique_ptr<DiskStaging> ParamStore::make_staging() const {
  using D = DiskStates;
  if (disk_ == nullptr) return nullptr;
  DiskStaging::Parts parts{D::weights, D::parameters, D::gradients};
  if (setup_.offload.delayed_update == 0) parts.insert(parts.end(), {D::momentum, D::variance});
  return std::make_unique<DiskStaging>(*disk_, "offload staging", parts);
}

void ParamStore::reserve_pools(int64_t gathered_bytes, int64_t gradient_bytes) {
  gathered_bytes_ = gathered_bytes;
  // Pages are read straight into it, and the arena aligns to less.
  if (parameters_on(Offload::disk)) gathered_bytes_ += static_cast<int64_t>(TierFile::alignment);
  sums_.reserve_pool(gradient_bytes);
}

void ParamStore::add_parameters_to(MemoryPlan& plan) const {
  const auto whole = static_cast<uint64_t>(layout_.elements());
  const auto owned = static_cast<uint64_t>(layout_.owned());
  if (weights_tier() != Tier::disk)
    plan.add({"weights", copies() ? "master weights" : "parameters",
              (weights_whole() ? whole : owned) * 4, Life::permanent, "", weights_tier()});
  if (copies() && !parameters_on(Offload::disk))
    plan.add({"parameters", "parameters",
              (params_whole() ? whole : owned) * static_cast<uint64_t>(dtype_bytes(setup_.compute)),
              Life::permanent, "", tier_of(setup_.offload.parameters)});
  if (gathers())
    plan.add(
        {"gathered parameters", "gathered parameters", static_cast<uint64_t>(gathered_bytes_)});
}

void ParamStore::add_to(MemoryPlan& plan) const {
  if (disk_ != nullptr) {
    disk_->add_to(plan);
    staging_->add_to(plan);
  }
  if (update_staging_ != nullptr) update_staging_->add_to(plan);
  add_parameters_to(plan);
  if (crosses())
    plan.add(
        {"crossing", "offload staging", crossing_bytes(), Life::permanent, "", optimizer_memory()});
  if (setup_.purpose == Purpose::inference) return;
  sums_.add_to(plan);
  if (tied_ != nullptr)
    plan.add({"tied sum", "operations", static_cast<uint64_t>(TiedCopy::chunk_elements) * 4,
              Life::permanent, "", setup_.apart ? optimizer_memory() : Tier::device});
  if (optimizer_on(Offload::disk)) return;
  for (const char* name : {"momentum", "variance"})
    plan.add({name, "optimizer states", static_cast<uint64_t>(layout_.owned()) * 4, Life::permanent,
              "", tier_of(setup_.offload.optimizer)});
}

void ParamStore::bind(Arena& device, Arena& host, Ops& ops) {
  ops_ = &ops;
  const auto arena_of = [&](Tier tier) -> Arena& { return tier == Tier::host ? host : device; };
  const Shape whole{layout_.elements()}, owned{layout_.owned()};
  if (disk_ != nullptr) {
    disk_->bind(setup_.offload, ops);
    staging_->bind(host);
  }
  if (update_staging_ != nullptr) update_staging_->bind(host);
  if (weights_tier() != Tier::disk)
    weights_ =
        arena_of(weights_tier()).take("weights", DType::f32, weights_whole() ? whole : owned);
  if (!copies())
    computed_ = weights_;
  else if (!parameters_on(Offload::disk))
    computed_ = arena_of(tier_of(setup_.offload.parameters))
                    .take("parameters", setup_.compute, params_whole() ? whole : owned);
  if (parameters_on(Offload::host))
    host_parameters_ = device.device().reach(std::make_unique<TierMemory>(computed_), ops.queue());
  if (gathers()) {
    gathered_ = device.take("gathered parameters", DType::u8, Shape{gathered_bytes_});
    if (parameters_on(Offload::disk)) gathered_.data = page_aligned(gathered_.data);
  }
  if (crosses())
    crossing_ = arena_of(optimizer_memory())
                    .take("crossing", DType::u8, Shape{static_cast<int64_t>(crossing_bytes())});
  if (setup_.purpose == Purpose::training) {
    sums_.bind(device, host, ops);
    if (tied_ != nullptr)
      tied_scratch_ = arena_of(setup_.apart ? optimizer_memory() : Tier::device)
                          .take("tied sum", DType::f32, Shape{TiedCopy::chunk_elements});
    if (!optimizer_on(Offload::disk)) {
      Arena& states = arena_of(tier_of(setup_.offload.optimizer));
      momentum_ = states.take("momentum", DType::f32, owned);
      variance_ = states.take("variance", DType::f32, owned);
    }
  }
  for (size_t b = 0; b < views_.size(); ++b) {
    const ParamLayout::BlockLayout& block = layout_.blocks()[b];
    if (!gathers()) show(b, computed_.range(block.offset, block.elements), &BlockViews::params);
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

// ---- pieces

Tensor ParamStore::mapped(size_t part) const {
  staging_->settle();
  return disk_->mapped(part);
}

Tensor ParamStore::computed_flat() const {
  return parameters_on(Offload::disk) ? mapped(DiskStates::parameters) : computed_;
}

std::vector<NamedTensor> ParamStore::weights(Copies copies) const {
  if (pending_ != nullptr) pending_->finish();
  const Tensor flat = weights_tier() == Tier::disk ? mapped(weights_part()) : weights_;
  return layout_.pieces(flat, weights_whole(), copies);
}

std::vector<NamedTensor> ParamStore::gradients(Copies copies) const {
  if (pending_ != nullptr) pending_->finish();
  return sums_.pieces(copies);
}

std::vector<NamedTensor> ParamStore::momentum(Copies copies) const {
  if (pending_ != nullptr) pending_->finish();
  const bool on_disk = optimizer_on(Offload::disk);
  return layout_.pieces(on_disk ? mapped(DiskStates::momentum) : momentum_, false, copies);
}

std::vector<NamedTensor> ParamStore::variance(Copies copies) const {
  if (pending_ != nullptr) pending_->finish();
  const bool on_disk = optimizer_on(Offload::disk);
  return layout_.pieces(on_disk ? mapped(DiskStates::variance) : variance_, false, copies);
}

std::vector<NamedTensor> ParamStore::computed(Copies copies) const {
  if (pending_ != nullptr) pending_->finish();
  return layout_.pieces(computed_flat(), params_whole(), copies);
}

void ParamStore::initialise(uint64_t seed) {
  for (const NamedTensor& piece : weights()) {
    const auto spec = std::ranges::find_if(
        layout_.entries(), [&](const ParamLayout::Entry& e) { return e.spec.name == piece.name; });
    switch (spec->spec.init) {
      case Init::zeros:
        ops_of(*ops_, piece.data).fill(piece.data, 0);
        break;
      case Init::ones:
        ops_of(*ops_, piece.data).fill(piece.data, 1);
        break;
      case Init::normal:
        // Runs that are contiguous in the whole tensor too.
        for_each_shared_run(whole(piece.shape), piece.box,
                            [&](int64_t global, int64_t local, int64_t count) {
                              ops_of(*ops_, piece.data)
                                  .fill_normal(piece.data.range(local, count),
                                               random_key(seed, "init " + piece.name),
                                               static_cast<uint64_t>(global), spec->spec.std);
                            });
        break;
    }
  }
  refresh_compute();
}

}  // namespace rankine

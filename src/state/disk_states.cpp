#include "state/disk_states.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace rankine {
DiskStates::DiskStates(const ParamLayout& layout, const Setup& setup)
    : layout_(layout), setup_(setup) {
  const int64_t owned = layout.owned();
  const int64_t moments = setup.moments ? owned : 0;
  parts_ = {{"weights", "master weights", DType::f32, setup.weights ? owned : 0},
            {"momentum", "optimizer states", DType::f32, moments},
            {"variance", "optimizer states", DType::f32, moments},
            {"parameters", "parameters", setup.compute,
             !setup.parameters ? 0
             : setup.whole     ? layout.elements()
                               : owned},
            {"gradient sums", "gradients", DType::f32, moments}};
  for (int level = 1; level < setup.gradient_levels; ++level)
    parts_.push_back(
        {fmt::format("gradient sums {}", level), "gradient sums", DType::f32, moments});
  uint64_t begin = 0;
  for (Place& part : parts_) {
    part.begin = begin;
    begin += static_cast<uint64_t>(part.elements * dtype_bytes(part.dtype));
  }
}

DiskStates::~DiskStates() {
  unmap();
}

uint64_t DiskStates::bytes() const {
  const Place& last = parts_.back();
  return last.begin + static_cast<uint64_t>(last.elements * dtype_bytes(last.dtype));
}

void DiskStates::add_to(MemoryPlan& plan) const {
  for (const Place& part : parts_)
    if (part.elements > 0)
      plan.add({part.name, part.category,
                static_cast<uint64_t>(part.elements * dtype_bytes(part.dtype)), Life::permanent, "",
                Tier::disk});
}

void DiskStates::bind(const OffloadSetup& setup, Ops& ops) {
  auto file = std::make_unique<TierFile>(
      TierFile::Setup{.folder = setup.folder,
                      .name = fmt::format("rankine-offload-{}-{}.tier", ::getpid(), setup.rank),
                      .bytes = std::max<uint64_t>(TierFile::alignment, bytes())});
  file_ = file.get();
  space_ = ops.device().reach(std::move(file), ops.queue());
}

Tensor DiskStates::mapped(size_t part) {
  if (map_ == nullptr) map_ = file_->map();
  const Place& place = parts_[part];
  return {static_cast<char*>(map_) + place.begin, place.dtype, Shape{place.elements}};
}

void DiskStates::unmap() {
  if (map_ == nullptr) return;
  ::msync(map_, file_->bytes(), MS_SYNC);
  ::munmap(map_, file_->bytes());
  map_ = nullptr;
}

DiskStates::Extent DiskStates::extent_of(size_t part, size_t block, bool own) const {
  expect(map_ == nullptr, "the map is let go before blocks are read and written");
  const Place& place = parts_[part];
  const ParamLayout::BlockLayout& b = layout_.blocks()[block];
  const auto width = static_cast<uint64_t>(dtype_bytes(place.dtype));
  int64_t first = b.owned_offset, count = b.shard;
  if (whole(part)) {
    first = b.offset + (own ? owner() * b.shard : 0);
    count = own ? b.shard : b.elements;
  }
  return {place.begin + static_cast<uint64_t>(first) * width, static_cast<uint64_t>(count) * width};
}

TierWork DiskStates::start_read(size_t part, size_t block, void* to) {
  const auto [offset, bytes] = extent_of(part, block, false);
  return space_->start_read(offset, to, bytes);
}

TierWork DiskStates::start_write(size_t part, size_t block, const void* from) {
  const auto [offset, bytes] = extent_of(part, block, false);
  return space_->start_write(offset, from, bytes);
}

TierWork DiskStates::start_read_own(size_t part, size_t block, void* to) {
  const auto [offset, bytes] = extent_of(part, block, true);
  return space_->start_read(offset, to, bytes);
}

TierWork DiskStates::start_write_own(size_t part, size_t block, const void* from) {
  const auto [offset, bytes] = extent_of(part, block, true);
  return space_->start_write(offset, from, bytes);
}

}  // namespace rankine

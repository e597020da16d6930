#include "state/disk_states.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace rankine {
namespace {

constexpr const char* staging_names[2][DiskStates::part_count] = {
    {"offload staging 0 weights", "offload staging 0 momentum", "offload staging 0 variance",
     "offload staging 0 gradients"},
    {"offload staging 1 weights", "offload staging 1 momentum", "offload staging 1 variance",
     "offload staging 1 gradients"}};

// The arena aligns to less than direct access wants.
constexpr int64_t slack = static_cast<int64_t>(TierFile::alignment);

}  // namespace

DiskStates::~DiskStates() {
  unmap();
}

void DiskStates::Staging::wait() {
  for (TierWork& work : under_way) work.wait();
  under_way.clear();
}

int64_t DiskStates::largest_shard() const {
  int64_t most = 0;
  for (const ParamLayout::BlockLayout& block : layout_.blocks()) most = std::max(most, block.shard);
  return most;
}

void DiskStates::add_to(MemoryPlan& plan) const {
  for (const auto& [name, category] : {std::pair{"weights", "master weights"},
                                       {"momentum", "optimizer states"},
                                       {"variance", "optimizer states"},
                                       {"gradient sums", "gradients"}})
    plan.add({name, category, part_bytes(), Life::permanent, "", Tier::disk});
  for (const auto& set : staging_names)
    for (const char* name : set)
      plan.add({name, "offload staging", static_cast<uint64_t>(largest_shard() * 4 + slack),
                Life::permanent, "", Tier::host});
}

void DiskStates::bind(const OffloadSetup& setup, Arena& host) {
  file_ = std::make_unique<TierFile>(
      TierFile::Setup{.folder = setup.folder,
                      .name = fmt::format("rankine-offload-{}-{}.tier", ::getpid(), setup.rank),
                      .bytes = std::max<uint64_t>(TierFile::alignment, part_count * part_bytes())});
  for (size_t s = 0; s < 2; ++s)
    for (const char* name : staging_names[s]) {
      const Tensor raw = host.take(name, DType::u8, Shape{largest_shard() * 4 + slack});
      const auto address = reinterpret_cast<uintptr_t>(raw.data);
      const uintptr_t aligned = (address + slack - 1) / slack * slack;
      staging_[s].memory.push_back(
          {reinterpret_cast<void*>(aligned), DType::f32, Shape{largest_shard()}});
    }
}

std::string DiskStates::description() const {
  return fmt::format("{} in '{}', {}{}", format_bytes(file_->bytes()), file_->path().string(),
                     file_->engine_name(),
                     file_->direct() ? ", direct" : ", through the page cache");
}

Tensor DiskStates::mapped(Part part) {
  if (map_ == nullptr && file_->bytes() > 0) {
    const int descriptor = ::open(file_->path().c_str(), O_RDWR | O_CLOEXEC);
    void* map = descriptor < 0 ? MAP_FAILED
                               : ::mmap(nullptr, file_->bytes(), PROT_READ | PROT_WRITE, MAP_SHARED,
                                        descriptor, 0);
    const int code = errno;
    if (descriptor >= 0) ::close(descriptor);
    require(map != MAP_FAILED, ErrorKind::environment, "cannot map '{}': {}",
            file_->path().string(), std::strerror(code));
    map_ = map;
  }
  return {static_cast<char*>(map_) + part * part_bytes(), DType::f32, Shape{layout_.owned()}};
}

void DiskStates::unmap() {
  if (map_ == nullptr) return;
  ::msync(map_, file_->bytes(), MS_SYNC);
  ::munmap(map_, file_->bytes());
  map_ = nullptr;
}

uint64_t DiskStates::offset(Part part, size_t block) const {
  return part * part_bytes() + static_cast<uint64_t>(layout_.blocks()[block].owned_offset) * 4;
}

uint64_t DiskStates::bytes(size_t block) const {
  return static_cast<uint64_t>(layout_.blocks()[block].shard) * 4;
}

void DiskStates::start(bool write, Staging& staging, size_t block, const Parts& parts) {
  for (const Part part : parts) {
    void* memory = staging.memory[part].data;
    staging.under_way.push_back(write
                                    ? file_->start_write(offset(part, block), memory, bytes(block))
                                    : file_->start_read(offset(part, block), memory, bytes(block)));
  }
}

void DiskStates::visit(Staging& staging, size_t block, const Pass& pass) {
  staging.wait();
  std::vector<Tensor> parts;
  for (const Tensor& memory : staging.memory)
    parts.push_back(memory.range(0, layout_.blocks()[block].shard));
  pass.visit(block, parts);
  start(true, staging, block, pass.written);
}

void DiskStates::for_each_block(const Pass& pass) {
  expect(map_ == nullptr, "the map is let go before blocks are visited");
  for (Staging& staging : staging_) staging.wait();
  const size_t count = layout_.blocks().size();
  if (count > 0) start(false, staging_[0], 0, pass.read);
  for (size_t b = 0; b < count; ++b) {
    Staging& next = staging_[(b + 1) % 2];
    next.wait();
    if (b + 1 < count) start(false, next, b + 1, pass.read);
    visit(staging_[b % 2], b, pass);
  }
  for (Staging& staging : staging_) staging.wait();
}

void DiskStates::with_block(size_t block, const Pass& pass) {
  expect(map_ == nullptr, "the map is let go before blocks are visited");
  // What is written of the other staging memory may be of this block.
  for (Staging& staging : staging_)
    if (!pass.read.empty()) staging.wait();
  Staging& staging = staging_[next_++ % 2];
  staging.wait();
  start(false, staging, block, pass.read);
  visit(staging, block, pass);
}

Tensor DiskStates::open(size_t block, Part part) {
  expect(map_ == nullptr && opened_.size() < 2, "two blocks are open at most, and no map");
  for (Staging& staging : staging_) staging.wait();
  Staging& staging = staging_[opened_.size()];
  opened_.push_back({block, part});
  start(false, staging, block, {part});
  staging.wait();
  return staging.memory[part].range(0, layout_.blocks()[block].shard);
}

void DiskStates::close() {
  for (size_t i = 0; i < opened_.size(); ++i)
    start(true, staging_[i], opened_[i].block, {opened_[i].part});
  opened_.clear();
  for (Staging& staging : staging_) staging.wait();
}

}  // namespace rankine

#include "state/disk_staging.h"

#include <algorithm>

namespace rankine {
namespace {

// The arena aligns to less than direct access wants.
constexpr int64_t page = static_cast<int64_t>(TierFile::alignment);

constexpr const char* part_names[] = {"weights", "momentum", "variance", "parameters", "gradients"};

}  // namespace

DiskStaging::DiskStaging(DiskStates& states, std::string name, Parts parts)
    : states_(states), name_(std::move(name)), parts_(std::move(parts)) {
  std::erase_if(parts_, [&](size_t part) { return !states_.holds(part); });
}

void DiskStaging::Half::wait() {
  for (TierWork& work : under_way) work.wait();
  under_way.clear();
}

std::string DiskStaging::name_of(int half, size_t part) const {
  return fmt::format("{} {} {}", name_, half, part_names[part]);
}

int64_t DiskStaging::bytes_of(size_t part) const {
  int64_t most = 0;
  for (const ParamLayout::BlockLayout& block : states_.layout().blocks())
    most = std::max(most, states_.whole(part) ? block.elements : block.shard);
  return most * dtype_bytes(states_.dtype(part));
}

void DiskStaging::add_to(MemoryPlan& plan) const {
  for (int half = 0; half < 2; ++half)
    for (const size_t part : parts_)
      plan.add({name_of(half, part), "offload staging",
                static_cast<uint64_t>(bytes_of(part) + page), Life::permanent, "", Tier::host});
}

void DiskStaging::bind(Arena& host) {
  for (int h = 0; h < 2; ++h) {
    Half& half = halves_[h];
    half.memory.resize(DiskStates::gradients + 1);
    for (const size_t part : parts_) {
      const int64_t bytes = bytes_of(part);
      const Tensor raw = host.take(name_of(h, part), DType::u8, Shape{bytes + page});
      const DType dtype = states_.dtype(part);
      half.memory[part] = {page_aligned(raw.data), dtype, Shape{bytes / dtype_bytes(dtype)}};
    }
  }
}

void DiskStaging::start(bool write, Half& half, size_t block, const Parts& parts) {
  for (const size_t part : parts) {
    void* const memory = half.memory[slot(part)].data;
    half.under_way.push_back(write ? states_.start_write_own(part, block, memory)
                                   : states_.start_read_own(part, block, memory));
  }
}

void DiskStaging::visit(Half& half, size_t block, const Pass& pass) {
  half.wait();
  std::vector<Tensor> parts;
  for (const Tensor& memory : half.memory)
    parts.push_back(memory.empty() ? memory
                                   : memory.range(0, states_.layout().blocks()[block].shard));
  pass.visit(block, parts);
  start(true, half, block, pass.written);
}

void DiskStaging::settle() {
  for (Half& half : halves_) half.wait();
}

void DiskStaging::for_each_block(const Pass& pass) {
  settle();
  const size_t count = states_.layout().blocks().size();
  const auto nth = [&](size_t i) { return pass.backwards ? count - 1 - i : i; };
  if (count > 0) start(false, halves_[0], nth(0), pass.read);
  for (size_t i = 0; i < count; ++i) {
    Half& next = halves_[(i + 1) % 2];
    next.wait();
    if (i + 1 < count) start(false, next, nth(i + 1), pass.read);
    visit(halves_[i % 2], nth(i), pass);
  }
  settle();
}

void DiskStaging::with_block(size_t block, const Pass& pass) {
  // What is written of the other half may be of this block.
  if (!pass.read.empty()) settle();
  Half& half = halves_[next_++ % 2];
  half.wait();
  start(false, half, block, pass.read);
  visit(half, block, pass);
}

Tensor DiskStaging::open(size_t block, size_t part) {
  expect(opened_.size() < 2, "two blocks are open at most");
  settle();
  Half& half = halves_[opened_.size()];
  opened_.push_back({block, part});
  start(false, half, block, {part});
  half.wait();
  return half.memory[slot(part)].range(0, states_.layout().blocks()[block].shard);
}

void DiskStaging::close() {
  for (size_t i = 0; i < opened_.size(); ++i)
    start(true, halves_[i], opened_[i].block, {opened_[i].part});
  opened_.clear();
  settle();
}

void DiskStaging::complete(size_t block,
                           const std::function<void(const Tensor& own, const Tensor& all)>& fill) {
  const ParamLayout::BlockLayout& b = states_.layout().blocks()[block];
  Half& half = halves_[next_++ % 2];
  half.wait();
  const Tensor all = half.memory[DiskStates::parameters].range(0, b.elements);
  const Tensor own = all.range(states_.owner() * b.shard, b.shard);
  states_.start_read_own(DiskStates::parameters, block, own.data).wait();
  fill(own, all);
  half.under_way.push_back(states_.start_write(DiskStates::parameters, block, all.data));
}

}  // namespace rankine

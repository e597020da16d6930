#include "state/gradient_sums.h"

#include <algorithm>
#include <bit>

namespace rankine {

GradientSums::GradientSums(const ParamLayout& layout, const Setup& setup, const StateRanks& ranks,
                           DiskStaging* disk)
    : layout_(layout),
      setup_(setup),
      disk_(disk),
      ranks_(ranks),
      current_(layout.blocks().size()),
      reduced_(layout.blocks().size()),
      later_(layout.blocks().size()) {}

// Without any the result is where the one reduction of a step leaves it.
int GradientSums::levels(const Setup& setup) {
  const bool pooled = reduces_every_micro(setup.zero) || setup.offload != Offload::none;
  if (!setup.strict || setup.micros == 1) return pooled ? 1 : 0;
  return std::max(1, static_cast<int>(std::bit_width(static_cast<unsigned>(setup.micros - 1))));
}

void GradientSums::add_to(MemoryPlan& plan) const {
  if (pooled())
    plan.add({"gradient pool", "gradients under way", static_cast<uint64_t>(pool_bytes_)});
  else
    plan.add({"gradients", "gradients", static_cast<uint64_t>(layout_.elements()) * 4});
  // The last accumulator is where a shard of gradients stays; others exist for strict sums.
  for (int level = 0; level < levels() && !on_disk(); ++level)
    plan.add({fmt::format("gradient sums {}", level),
              pooled() && level + 1 == levels() ? "gradients" : "gradient sums",
              static_cast<uint64_t>(layout_.owned()) * 4, Life::permanent, "",
              tier_of(setup_.offload)});
  if (crosses()) {
    int64_t most = 0;
    for (const ParamLayout::BlockLayout& block : layout_.blocks())
      most = std::max(most, block.shard);
    plan.add({"arrived gradients", "offload staging", static_cast<uint64_t>(most) * 4,
              Life::permanent, "", Tier::host});
  }
  if (on_disk())
    plan.add({"gradient squares", "sums", ExactSum::size * sizeof(int64_t), Life::permanent, "",
              Tier::host});
}

void GradientSums::bind(Arena& arena, Arena& host, Ops& ops) {
  ops_ = &ops;
  if (pooled())
    pool_ = arena.take("gradient pool", DType::u8, Shape{pool_bytes_});
  else
    whole_ = arena.take("gradients", DType::f32, Shape{layout_.elements()});
  for (int level = 0; level < levels() && !on_disk(); ++level)
    accumulators_.push_back(
        (setup_.offload == Offload::none ? arena : host)
            .take(fmt::format("gradient sums {}", level), DType::f32, Shape{layout_.owned()}));
  if (on_disk()) {
    squares_ = host.take("gradient squares", DType::i64, Shape{ExactSum::size});
    sum_ops().upload(ExactSum{}.parts().data(), squares_);
  }
  if (crosses()) {
    int64_t most = 0;
    for (const ParamLayout::BlockLayout& block : layout_.blocks())
      most = std::max(most, block.shard);
    arrived_ = host.take("arrived gradients", DType::f32, Shape{most});
  }
  for (size_t b = 0; b < current_.size() && !pooled(); ++b)
    current_[b] = whole_.range(layout_.blocks()[b].offset, layout_.blocks()[b].elements);
}

Tensor GradientSums::begin(size_t block, int64_t offset) {
  const int64_t elements = layout_.blocks()[block].elements;
  if (pooled())
    current_[block] = {static_cast<char*>(pool_.range(offset, elements * 4).data), DType::f32,
                       Shape{elements}, pool_.device};
  settle_overlapping(current_[block]);
  // Others have used this memory, and backward writes no padding.
  if (pooled())
    for (const ParamLayout::Range& gap : layout_.blocks()[block].padding)
      ops_->fill(current_[block].range(gap.first, gap.count), 0);
  return current_[block];
}

Tensor GradientSums::accumulator(int level, size_t block) const {
  const ParamLayout::BlockLayout& b = layout_.blocks()[block];
  return accumulators_[static_cast<size_t>(level)].range(b.owned_offset, b.shard);
}

Tensor GradientSums::result(size_t block) const {
  if (!accumulators_.empty()) return accumulator(top(), block);
  const ParamLayout::BlockLayout& b = layout_.blocks()[block];
  const int64_t own = layout_.owners() == 1 ? 0 : ranks_.data.rank() * b.shard;
  return whole_.range(b.offset + own, b.shard);
}

// Joins what the ranks of the tensor axis have seen parts of. They come here at the same time, and
// it is little.
void GradientSums::add_partial_sums(size_t block) const {
  for (const ParamLayout::PartialSum& sum : layout_.blocks()[block].partial_sums) {
    Communicator& over = sum.over == GradientSum::tensor ? *ranks_.tensor : *ranks_.replicas;
    over.all_reduce(current_[block].range(sum.first, sum.count), Reduction::sum,
                    "partial gradients")
        .lead(ops_->queue());
  }
}

void GradientSums::reduce(size_t block) {
  add_partial_sums(block);
  const ParamLayout::BlockLayout& b = layout_.blocks()[block];
  const Tensor whole = current_[block];
  Pending pending{block, {}, whole, whole, reduced_[block]++};
  constexpr const char* tag = "gradients";
  if (!scatters_gradients(setup_.zero)) {
    pending.work = ranks_.data.all_reduce(whole, Reduction::sum, tag);
  } else {
    // The only or first contribution goes where it stays; later ones come to lie in the pool.
    const bool stays = !crosses() && !accumulators_.empty() && pending.micro == 0 &&
                       (!setup_.strict || setup_.micros == 1);
    pending.own = stays ? result(block) : whole.range(ranks_.data.rank() * b.shard, b.shard);
    pending.work = ranks_.data.reduce_scatter(whole, pending.own, tag);
  }
  if (pending.work.empty() && accumulators_.empty() && !on_disk()) return;
  pending_.push_back(std::move(pending));
}

// Of levels on disk the result lies first.
void GradientSums::visit_level(int level, size_t block, const Visit& visit) {
  if (!on_disk()) return visit.act(accumulator(level, block));
  using D = DiskStates;
  const size_t part = level == top() ? D::gradients : D::gradients + 1 + static_cast<size_t>(level);
  const DiskStaging::Parts parts{part};
  disk_->with_block(block, {.read = visit.read ? parts : DiskStaging::Parts{},
                            .written = visit.write ? parts : DiskStaging::Parts{},
                            .visit = [&](size_t, std::span<const Tensor> staged) {
                              visit.act(staged[D::gradients]);
                            }});
}

void GradientSums::put(int level, const Pending& p) {
  visit_level(level, p.block, {.write = true, .act = [&](const Tensor& sum) {
                                 sum_ops().cast(p.own, sum);
                                 complete(p, sum);
                               }});
}

void GradientSums::add(int level, const Pending& p) {
  visit_level(level, p.block, {.read = true, .write = true, .act = [&](const Tensor& sum) {
                                 sum_ops().add(sum, p.own, sum);
                                 complete(p, sum);
                               }});
}

void GradientSums::complete(const Pending& p, const Tensor& sum) const {
  if (has_squares(p.block) && p.micro == setup_.micros - 1) add_squares(p.block, sum, squares_);
}

void GradientSums::add_squares(size_t block, const Tensor& gradients, Tensor exact) const {
  const ParamLayout::BlockLayout& b = layout_.blocks()[block];
  for (const ParamLayout::Range& range : b.ranges)
    if (range.counted)
      sum_ops().sum_squares(gradients.range(range.first - b.owned_offset, range.count), exact);
}

ExactSum GradientSums::take_squares() {
  ExactSum squares;
  if (!on_disk()) return squares;
  sum_ops().download(squares_, squares.parts().data());
  sum_ops().upload(ExactSum{}.parts().data(), squares_);
  return squares;
}

// What the host adds lies in its memory.
Tensor GradientSums::beside_sums(const Tensor& own) const {
  if (!crosses()) return own;
  const Tensor there = arrived_.range(0, own.elements());
  Queue &queue = ops_->queue(), &host = ops_->host().queue();
  queue.follow(host.mark());
  queue.copy(there.data, own.data, static_cast<uint64_t>(own.bytes()));
  host.follow(queue.mark());
  return there;
}

// Adds what one reduction brings to what came before.
void GradientSums::settle(Pending& p) {
  p.work.lead(ops_->queue());
  if (levels() == 0 || (!on_disk() && p.own.data == result(p.block).data)) return;
  p.own = beside_sums(p.own.range(0, layout_.blocks()[p.block].shard));
  if (!setup_.strict) return p.micro == 0 ? put(top(), p) : add(top(), p);
  // A binary counter: level k holds the sum of the 2^k micro-batches before, where bit k of the
  // number of them is set. The last one collects whatever is left.
  const bool last = p.micro == setup_.micros - 1;
  int level = 0;
  for (int before = p.micro; before != 0 && (last || before % 2 == 1); before /= 2, ++level)
    if (before % 2 == 1)
      visit_level(level, p.block, {.read = true, .act = [&](const Tensor& sum) {
                                     sum_ops().add(sum, p.own, p.own);
                                   }});
  put(last ? top() : level, p);
}

void GradientSums::settle_overlapping(const Tensor& memory) {
  const char* begin = static_cast<const char*>(memory.data);
  const char* end = begin + memory.bytes();
  const auto overlaps = [&](const Pending& p) {
    const char* from = static_cast<const char*>(p.whole.data);
    return from < end && begin < from + p.whole.bytes();
  };
  // In order, since the group runs them in order.
  auto last = std::find_if(pending_.rbegin(), pending_.rend(), overlaps);
  const auto count = pending_.rend() - last;
  for (auto p = pending_.begin(); p != pending_.begin() + count; ++p) settle(*p);
  pending_.erase(pending_.begin(), pending_.begin() + count);
}

void GradientSums::finish() {
  for (Pending& pending : pending_) settle(pending);
  pending_.clear();
  std::ranges::fill(reduced_, 0);
}

std::vector<NamedTensor> GradientSums::pieces(Copies copies) const {
  if (on_disk()) {
    disk_->settle();
    return layout_.pieces(disk_->states().mapped(DiskStates::gradients), false, copies);
  }
  if (!accumulators_.empty()) return layout_.pieces(accumulators_.back(), false, copies);
  return layout_.pieces(whole_, true, copies);
}

}  // namespace rankine

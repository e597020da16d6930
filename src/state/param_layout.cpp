#include "state/param_layout.h"

#include <algorithm>
#include <numeric>

#include "model/block_parameters.h"

namespace rankine {
namespace {

int64_t round_up(int64_t x, int64_t unit) {
  return (x + unit - 1) / unit * unit;
}

// Boxes of [begin, end) below a fixed index of the dims before `dim`.
void add_boxes(const Shape& shape, int dim, Box fixed, int64_t begin, int64_t end,
               std::vector<Box>& out) {
  int64_t inner = 1;
  for (int d = dim + 1; d < shape.rank(); ++d) inner *= shape[d];
  const auto add = [&](int64_t first, int64_t last) {
    Box box = fixed;
    box.begin = box.begin.with(dim, first);
    box.end = box.end.with(dim, last);
    out.push_back(box);
  };
  if (inner == 1) return add(begin, end);
  const auto within = [&](int64_t row, int64_t from, int64_t to) {
    Box box = fixed;
    box.begin = box.begin.with(dim, row);
    box.end = box.end.with(dim, row + 1);
    add_boxes(shape, dim + 1, box, from, to, out);
  };
  int64_t row = begin / inner;
  if (begin % inner != 0 || end < (row + 1) * inner) {
    within(row, begin - row * inner, std::min(end - row * inner, inner));
    ++row;
  }
  const int64_t last = end / inner;
  if (last > row) add(row, last);
  if (last >= row && end % inner != 0) within(last, 0, end % inner);
}

}  // namespace

int64_t first_index(const Shape& shape, const Box& box) {
  int64_t index = 0;
  for (int d = 0; d < shape.rank(); ++d) index = index * shape[d] + box.begin[d];
  return index;
}

std::vector<Box> boxes_of_range(const Shape& shape, int64_t begin, int64_t end) {
  std::vector<Box> out;
  if (begin >= end) return out;
  if (begin == 0 && end == shape.elements()) return {whole(shape)};
  add_boxes(shape, 0, whole(shape), begin, end, out);
  return out;
}

ParamLayout::ParamLayout(std::span<const BlockDescription> blocks, int owners, int owner,
                         int64_t shard_unit)
    : owners_(owners), owner_(owner), shard_unit_(shard_unit) {
  expect(owners >= 1 && owner >= 0 && owner < owners, "an owner among the owners");
  for (const BlockDescription& block : blocks) lay_out(block.parameters, blocks_.emplace_back());
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (blocks[b].tied.empty()) continue;
    const auto found = std::find_if(groups_.begin(), groups_.end(),
                                    [&](const Entry& e) { return e.spec.name == blocks[b].tied; });
    expect(found != groups_.end(), "a tied parameter has an owner");
    blocks_[b].groups.push_back(static_cast<size_t>(found - groups_.begin()));
  }
}

int64_t ParamLayout::block_elements(std::span<const ParamSpec> specs, int owners,
                                    int64_t shard_unit) {
  int64_t elements = 0;
  for (const ParamSpec& group : joined_groups(specs))
    elements += round_up(group.stored().elements(), alignment);
  return round_up(elements, shard_unit * owners);
}

void ParamLayout::lay_out(std::span<const ParamSpec> specs, BlockLayout& block) {
  const size_t index = blocks_.size() - 1, first_group = groups_.size();
  block.offset = elements_;
  for (const ParamSpec& group : joined_groups(specs)) {
    block.groups.push_back(groups_.size());
    groups_.push_back({group, 0});
    owners_of_groups_.push_back(index);
  }
  block.own_groups = block.groups.size();
  for (const bool decay : {true, false})
    for (size_t g = first_group; g < groups_.size(); ++g) {
      if (groups_[g].spec.decay != decay) continue;
      groups_[g].offset = elements_;
      const int64_t used = groups_[g].spec.stored().elements(), end = round_up(used, alignment);
      if (end > used) block.padding.push_back({elements_ + used - block.offset, end - used});
      elements_ += end;
    }
  const int64_t used = elements_ - block.offset, end = round_up(used, shard_unit_ * owners_);
  if (end > used) block.padding.push_back({used, end - used});
  elements_ = block.offset + end;
  block.elements = elements_ - block.offset;
  block.shard = block.elements / owners_;
  block.owned_offset = owned_;
  owned_ += block.shard;
  lay_out_entries(specs, first_group, block);
}

void ParamLayout::lay_out_entries(std::span<const ParamSpec> specs, size_t first_group,
                                  BlockLayout& block) {
  const size_t first_entry = entries_.size();
  int64_t offset = 0;
  size_t group = first_group;
  for (const ParamSpec& spec : specs) {
    if (!spec.joined) offset = groups_[group++].offset;
    entries_.push_back({spec, offset});
    blocks_of_entries_.push_back(blocks_.size() - 1);
    offset += spec.stored().elements();
  }
  std::vector<size_t> order(specs.size());  // of the flat order
  std::iota(order.begin(), order.end(), first_entry);
  std::ranges::sort(order, {}, [&](size_t e) { return entries_[e].offset; });
  const int64_t shard_begin = block.offset + owner_ * block.shard;
  for (size_t i = 0; i < order.size(); ++i) {
    const Entry& entry = entries_[order[i]];
    // A parameter's padding behaves like it.
    const int64_t end =
        i + 1 < order.size() ? entries_[order[i + 1]].offset : block.offset + block.elements;
    const int64_t first = std::max(entry.offset, shard_begin);
    const int64_t last = std::min(end, shard_begin + block.shard);
    if (entry.spec.sum != GradientSum::none) {
      auto& sums = block.partial_sums;
      const int64_t begin = entry.offset - block.offset;
      if (!sums.empty() && sums.back().over == entry.spec.sum &&
          sums.back().first + sums.back().count == begin)
        sums.back().count += end - entry.offset;
      else
        sums.push_back({begin, end - entry.offset, entry.spec.sum});
    }
    if (first >= last) continue;
    const Range range{first - shard_begin + block.owned_offset, last - first, entry.spec.decay,
                      entry.spec.counted};
    if (!block.ranges.empty() && block.ranges.back().alike(range))
      block.ranges.back().count += range.count;
    else
      block.ranges.push_back(range);
  }
}

std::vector<NamedTensor> ParamLayout::pieces(const Tensor& flat, bool whole_order,
                                             Copies copies) const {
  expect(!flat.empty(), "the states asked for are held");
  std::vector<NamedTensor> out;
  for (size_t e = 0; e < entries_.size(); ++e) {
    const Entry& entry = entries_[e];
    if (copies == Copies::counted && !entry.spec.counted) continue;
    const BlockLayout& block = blocks_[blocks_of_entries_[e]];
    const Shape held = extent(entry.spec.box);
    const int64_t shard_begin = block.offset + owner_ * block.shard;
    const int64_t begin = std::max(entry.offset, shard_begin);
    const int64_t end = std::min(entry.offset + held.elements(), shard_begin + block.shard);
    int64_t at = whole_order ? begin : begin - shard_begin + block.owned_offset;
    for (const Box& box : boxes_of_range(held, begin - entry.offset, end - entry.offset)) {
      Box global = box;
      for (int d = 0; d < held.rank(); ++d) {
        global.begin = global.begin.with(d, box.begin[d] + entry.spec.box.begin[d]);
        global.end = global.end.with(d, box.end[d] + entry.spec.box.begin[d]);
      }
      out.push_back(
          {entry.spec.name, entry.spec.shape, global, flat.range(at, volume(box)).as(extent(box))});
      at += volume(box);
    }
  }
  return out;
}

}  // namespace rankine

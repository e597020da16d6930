#include "state/param_layout.h"

#include <algorithm>

namespace rankine {
namespace {

int64_t round_up(int64_t x, int64_t unit) {
  return (x + unit - 1) / unit * unit;
}

int64_t stored_elements(const ParamSpec& spec) {
  return spec.shape[0] == 0 ? 0 : spec.shape.elements() / spec.shape[0] * spec.stored_rows;
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

ParamLayout::ParamLayout(std::span<const BlockDescription> blocks, int owners, int owner)
    : owners_(owners), owner_(owner) {
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

void ParamLayout::lay_out(std::span<const ParamSpec> specs, BlockLayout& block) {
  const size_t index = blocks_.size() - 1, first_group = groups_.size();
  block.offset = elements_;
  for (const ParamSpec& group : joined_groups(specs)) {
    block.groups.push_back(groups_.size());
    groups_.push_back({group, 0});
    owners_of_groups_.push_back(index);
  }
  block.own_groups = block.groups.size();
  std::vector<Range> ranges;
  for (const bool decay : {true, false}) {
    const int64_t begin = elements_;
    for (size_t g = first_group; g < groups_.size(); ++g) {
      if (groups_[g].spec.decay != decay) continue;
      groups_[g].offset = elements_;
      const int64_t used = stored_elements(groups_[g].spec), end = round_up(used, alignment);
      if (end > used) block.padding.push_back({elements_ + used - block.offset, end - used, false});
      elements_ += end;
    }
    if (elements_ > begin) ranges.push_back({begin, elements_ - begin, decay});
  }
  const int64_t used = elements_ - block.offset, end = round_up(used, alignment * owners_);
  if (end > used) block.padding.push_back({used, end - used, false});
  elements_ = block.offset + end;
  block.elements = elements_ - block.offset;
  block.shard = block.elements / owners_;
  block.owned_offset = owned_;
  owned_ += block.shard;
  const int64_t shard_begin = block.offset + owner_ * block.shard;
  for (const Range& range : ranges) {
    const int64_t first = std::max(range.first, shard_begin);
    const int64_t last = std::min(range.first + range.count, shard_begin + block.shard);
    if (first < last)
      block.ranges.push_back({first - shard_begin + block.owned_offset, last - first, range.decay});
  }
  int64_t offset = 0;
  size_t group = first_group;
  for (const ParamSpec& spec : specs) {
    if (!spec.joined) offset = groups_[group++].offset;
    entries_.push_back({spec, offset});
    blocks_of_entries_.push_back(index);
    offset += stored_elements(spec);
  }
}

std::vector<NamedTensor> ParamLayout::pieces(const Tensor& flat, bool whole_order) const {
  expect(!flat.empty(), "the states asked for are held");
  std::vector<NamedTensor> out;
  for (size_t e = 0; e < entries_.size(); ++e) {
    const Entry& entry = entries_[e];
    const BlockLayout& block = blocks_[blocks_of_entries_[e]];
    const Shape& shape = entry.spec.shape;
    const int64_t shard_begin = block.offset + owner_ * block.shard;
    const int64_t begin = std::max(entry.offset, shard_begin);
    const int64_t end = std::min(entry.offset + shape.elements(), shard_begin + block.shard);
    int64_t at = whole_order ? begin : begin - shard_begin + block.owned_offset;
    for (const Box& box : boxes_of_range(shape, begin - entry.offset, end - entry.offset)) {
      out.push_back({entry.spec.name, shape, box, flat.range(at, volume(box)).as(extent(box))});
      at += volume(box);
    }
  }
  return out;
}

}  // namespace rankine

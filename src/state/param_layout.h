#pragma once
#include <span>
#include <string>
#include <vector>

#include "model/block.h"
#include "tensor/named_tensor.h"

// Where every parameter lies in flat buffers, and which part of each block one rank of the data
// axis owns. Pure arithmetic: the planner and the store read the same layout.
namespace rankine {

// Elements that several ranks of the mesh hold alike, besides ZeRO's whole states: one copy counts.
enum class Copies : uint8_t { all, counted };

// A block is one contiguous range of the flat order, matrices first; each group of joined
// parameters starts at a multiple of 64 elements. A block is padded so that it divides into equal
// shards of whole 64s, one per owner; shards that hold nothing but padding are legal.
class ParamLayout {
 public:
  static constexpr int64_t alignment = 64;  // elements
  struct Entry {
    ParamSpec spec;
    int64_t offset;  // into the flat order
  };
  struct Range {
    int64_t first, count;
    bool decay = false;    // weight decay applies
    bool counted = false;  // in norms and files
    bool alike(const Range& other) const {
      return decay == other.decay && counted == other.counted;
    }
  };
  struct PartialSum {      // gradients that ranks of the tensor axis add up
    int64_t first, count;  // from the block's begin
    GradientSum over;
  };
  struct BlockLayout {
    int64_t offset = 0, elements = 0;     // with padding
    int64_t owned_offset = 0, shard = 0;  // of this rank's shard within what it owns
    std::vector<size_t> groups;           // its groups, then the tied one if there is one
    size_t own_groups = 0;
    std::vector<Range> ranges;   // of this rank's shard, in owned order
    std::vector<Range> padding;  // elements of no parameter, from the block's begin
    std::vector<PartialSum> partial_sums;
  };

  // `owners` ranks own shards of each block, multiples of `shard_unit` elements; this one is
  // `owner`.
  ParamLayout(std::span<const BlockDescription> blocks, int owners, int owner,
              int64_t shard_unit = alignment);

  const std::vector<BlockLayout>& blocks() const { return blocks_; }
  const std::vector<Entry>& entries() const { return entries_; }  // every parameter
  const std::vector<Entry>& groups() const { return groups_; }    // joined parameters as one
  int64_t elements() const { return elements_; }                  // of all blocks, with padding
  int64_t owned() const { return owned_; }                        // of this rank's shards
  int owners() const { return owners_; }
  // The block that owns a group.
  size_t block_of(size_t group) const { return owners_of_groups_[group]; }
  // This rank's pieces of the logical tensors (no padding): the boxes that its shards cover, over
  // a flat buffer in owned order, or in the whole order.
  std::vector<NamedTensor> pieces(const Tensor& flat, bool whole_order, Copies copies) const;
  // The padded elements of a block with these parameters among so many owners.
  static int64_t block_elements(std::span<const ParamSpec> specs, int owners,
                                int64_t shard_unit = alignment);

 private:
  void lay_out(std::span<const ParamSpec> specs, BlockLayout& block);
  void lay_out_entries(std::span<const ParamSpec> specs, size_t first_group, BlockLayout& block);

  int owners_, owner_;
  int64_t shard_unit_;
  int64_t elements_ = 0, owned_ = 0;
  std::vector<Entry> entries_, groups_;
  std::vector<size_t> owners_of_groups_, blocks_of_entries_;
  std::vector<BlockLayout> blocks_;
};

// The row-major index of a box's first element within its tensor.
int64_t first_index(const Shape& shape, const Box& box);
// The boxes that tile elements [begin, end) of a tensor in row-major order, each contiguous there.
std::vector<Box> boxes_of_range(const Shape& shape, int64_t begin, int64_t end);

}  // namespace rankine

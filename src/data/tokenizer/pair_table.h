#pragma once
#include <cstdint>
#include <vector>

// From a pair of token ids to the merge that joins them: a hash table that is only looked up once
// it is filled.
namespace rankine {

struct Merge {
  uint32_t rank;  // no_merge when the pair does not join
  int32_t result;
};
constexpr uint32_t no_merge = UINT32_MAX;

class PairTable {
 public:
  explicit PairTable(size_t merges) {
    size_t slots = 16;
    while (slots < 2 * merges) slots *= 2;
    slots_.assign(slots, {empty, {no_merge, -1}});
    mask_ = slots - 1;
  }

  // Ids must not be negative. Of equal pairs the last one stays.
  void insert(int32_t left, int32_t right, Merge merge) {
    const uint64_t key = key_of(left, right);
    size_t at = first_slot(key);
    while (slots_[at].key != empty && slots_[at].key != key) at = (at + 1) & mask_;
    slots_[at] = {key, merge};
  }

  Merge find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t at = first_slot(key);; at = (at + 1) & mask_)
      if (slots_[at].key == key || slots_[at].key == empty) return slots_[at].merge;
  }

 private:
  static constexpr uint64_t empty = UINT64_MAX;
  struct Slot {
    uint64_t key;
    Merge merge;
  };
  static uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t first_slot(uint64_t key) const { return (key * 0x9E3779B97F4A7C15ULL >> 32) & mask_; }

  std::vector<Slot> slots_;
  size_t mask_ = 0;
};

}  // namespace rankine

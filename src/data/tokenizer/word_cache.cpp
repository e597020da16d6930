#include "data/tokenizer/word_cache.h"

#include <algorithm>
#include <utility>

namespace rankine {
namespace {

constexpr size_t first_slots = 1 << 10;
constexpr size_t most_slots = 1 << 17;

}  // namespace

void WordCache::grow() {
  if (slots_.size() == most_slots) {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    words_.clear();
    ids_.clear();
    count_ = 0;
    return;
  }
  const std::vector<Slot> old =
      std::exchange(slots_, std::vector<Slot>(slots_.empty() ? first_slots : 2 * slots_.size()));
  for (const Slot& slot : old) {
    if (slot.word_bytes == 0) continue;
    size_t at = slot.hash & (slots_.size() - 1);
    while (slots_[at].word_bytes != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }
}

void WordCache::insert(std::string_view word, uint64_t hash, std::span<const int32_t> ids) {
  if (2 * count_ >= slots_.size()) grow();
  size_t at = hash & (slots_.size() - 1);
  while (slots_[at].word_bytes != 0) at = (at + 1) & (slots_.size() - 1);
  slots_[at] = {hash, static_cast<uint32_t>(words_.size()), static_cast<uint32_t>(ids_.size()),
                static_cast<uint16_t>(word.size()), static_cast<uint16_t>(ids.size())};
  words_ += word;
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  ++count_;
}

}  // namespace rankine

#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The ids of words that were encoded before. It forgets everything when it is full, so that its
// size is bounded and it follows the text.
namespace rankine {

class WordCache {
 public:
  static constexpr size_t longest_word = 64;  // bytes; longer ones are rarely met twice

  // The ids of `word`, or null; valid until the next insert.
  const std::span<const int32_t>* find(std::string_view word, uint64_t hash) {
    if (slots_.empty()) return nullptr;
    for (size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[at];
      if (slot.word_bytes == 0) return nullptr;
      if (slot.hash != hash || slot.word_bytes != word.size() ||
          std::memcmp(words_.data() + slot.word, word.data(), word.size()) != 0)
        continue;
      found_ = {ids_.data() + slot.ids, slot.id_count};
      return &found_;
    }
  }
  // `word` is not empty, not longer than longest_word and not there yet.
  void insert(std::string_view word, uint64_t hash, std::span<const int32_t> ids);

  static uint64_t hash_of(std::string_view word) {
    uint64_t hash = word.size() * 0x9E3779B97F4A7C15ULL;
    size_t at = 0;
    for (; at + 8 <= word.size(); at += 8) hash = mixed(hash, load(word, at, 8));
    return at == word.size() ? hash : mixed(hash, load(word, at, word.size() - at));
  }

 private:
  struct Slot {
    uint64_t hash = 0;
    uint32_t word = 0, ids = 0;  // where they begin
    uint16_t word_bytes = 0, id_count = 0;
  };
  static uint64_t load(std::string_view word, size_t at, size_t bytes) {
    uint64_t value = 0;
    std::memcpy(&value, word.data() + at, bytes);
    return value;
  }
  static uint64_t mixed(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0xFF51AFD7ED558CCDULL;
    return hash ^ hash >> 32;
  }
  void grow();

  std::vector<Slot> slots_;
  size_t count_ = 0;
  std::string words_;
  std::vector<int32_t> ids_;
  std::span<const int32_t> found_;
};

}  // namespace rankine

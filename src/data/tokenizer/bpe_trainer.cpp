#include "data/tokenizer/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <queue>

#include "base/error.h"
#include "data/tokenizer/byte_alphabet.h"
#include "data/tokenizer/tokenizer_files.h"
#include "data/tokenizer/word_cache.h"

namespace rankine {
namespace {

constexpr const char* end_of_text = "<|endoftext|>";

struct Word {
  std::vector<int32_t> ids;
  int64_t count;
};

uint64_t key_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
}

// Pairs of neighbours with their counts, which follow every merge.
class PairCounts {
 public:
  explicit PairCounts(std::vector<Word>& words) : words_(words) {
    for (size_t w = 0; w < words_.size(); ++w) {
      const std::vector<int32_t>& ids = words_[w].ids;
      for (size_t i = 0; i + 1 < ids.size(); ++i) change(ids[i], ids[i + 1], words_[w].count, w);
    }
    changed_.clear();
    for (const auto& [key, pair] : pairs_) queue_.push({pair.count, key});
  }

  // Takes the most frequent pair; false when none occurs any more.
  bool take(uint64_t& key) {
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const auto at = pairs_.find(best.key);
      if (at == pairs_.end() || at->second.count != best.count || best.count <= 0) continue;
      key = best.key;
      return true;
    }
    return false;
  }

  // Joins the pair into `result` wherever it occurs.
  void merge(uint64_t key, int32_t result) {
    const auto left = static_cast<int32_t>(key >> 32), right = static_cast<int32_t>(key);
    std::vector<uint32_t> places = std::move(pairs_.at(key).words);
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    for (const uint32_t w : places) merge_in(w, left, right, result);
    std::sort(changed_.begin(), changed_.end());
    changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
    for (const uint64_t other : changed_) {
      const auto at = pairs_.find(other);
      if (at->second.count > 0)
        queue_.push({at->second.count, other});
      else
        pairs_.erase(at);
    }
    changed_.clear();
    pairs_.erase(key);
  }

 private:
  struct Pair {
    int64_t count = 0;
    std::vector<uint32_t> words;  // where it may occur; some twice, some no more
  };
  struct Candidate {
    int64_t count;
    uint64_t key;
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : key > other.key;
    }
  };

  void change(int32_t left, int32_t right, int64_t by, size_t word) {
    const uint64_t key = key_of(left, right);
    Pair& pair = pairs_[key];
    pair.count += by;
    if (by > 0 && (pair.words.empty() || pair.words.back() != word))
      pair.words.push_back(static_cast<uint32_t>(word));
    changed_.push_back(key);
  }

  void merge_in(uint32_t w, int32_t left, int32_t right, int32_t result) {
    auto& [ids, count] = words_[w];
    size_t kept = 0;  // ids[0, kept) are done
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] != left || i + 1 == ids.size() || ids[i + 1] != right) {
        ids[kept++] = ids[i];
        continue;
      }
      if (kept > 0) {
        change(ids[kept - 1], left, -count, w);
        change(ids[kept - 1], result, count, w);
      }
      if (i + 2 < ids.size()) {
        change(right, ids[i + 2], -count, w);
        change(result, ids[i + 2], count, w);
      }
      ids[kept++] = result;
      ++i;
    }
    ids.resize(kept);
  }

  std::vector<Word>& words_;
  std::unordered_map<uint64_t, Pair> pairs_;
  std::priority_queue<Candidate> queue_;
  std::vector<uint64_t> changed_;
};

// Ids of the 256 bytes are in the order of their printable forms, as GPT-2 has them.
std::array<int32_t, 256> byte_ids() {
  const std::array<uint32_t, 256> alphabet = byte_alphabet();
  std::array<int32_t, 256> ids{};
  for (size_t byte = 0; byte < 256; ++byte)
    ids[byte] = static_cast<int32_t>(std::count_if(
        alphabet.begin(), alphabet.end(), [&](uint32_t point) { return point < alphabet[byte]; }));
  return ids;
}

}  // namespace

size_t BpeTrainer::WordHash::operator()(std::string_view word) const {
  return WordCache::hash_of(word);
}

void BpeTrainer::add(std::string_view text) {
  bytes_ += text.size();
  for (size_t at = 0; at < text.size();) {
    const std::string_view word = text.substr(at, word_bytes(pattern_, text, at));
    at += word.size();
    const auto known = counts_.find(word);
    if (known != counts_.end())
      ++known->second;
    else
      counts_.emplace(word, 1);
  }
}

std::string BpeTrainer::train(int64_t vocabulary) const {
  require(vocabulary >= 257 && vocabulary <= (1 << 24), ErrorKind::usage,
          "a vocabulary of {} cannot be trained: it holds 256 bytes and {}, so it must be from 257 "
          "to {}",
          vocabulary, end_of_text, 1 << 24);
  const std::array<int32_t, 256> of_byte = byte_ids();
  ByteLevelFile file{.tokens = std::vector<std::string>(256),
                     .merges = {},
                     .pattern = pattern_,
                     .end_of_text = end_of_text};
  for (size_t byte = 0; byte < 256; ++byte)
    file.tokens[static_cast<size_t>(of_byte[byte])] =
        to_printable(std::string(1, static_cast<char>(byte)));
  std::unordered_map<std::string, int32_t> ids;
  for (size_t id = 0; id < 256; ++id) ids.emplace(file.tokens[id], id);

  std::vector<Word> words;
  words.reserve(counts_.size());
  for (const auto& [text, count] : counts_) {
    Word& word = words.emplace_back(Word{{}, count});
    for (const char byte : text) word.ids.push_back(of_byte[static_cast<uint8_t>(byte)]);
  }
  PairCounts pairs(words);
  const auto wanted = static_cast<size_t>(vocabulary - 1);
  while (file.tokens.size() < wanted) {
    uint64_t key = 0;
    require(pairs.take(key), ErrorKind::data,
            "the text has pairs for {} tokens only; ask for a vocabulary of at most that, or give "
            "more text",
            file.tokens.size() + 1);
    const std::string& left = file.tokens[key >> 32];
    const std::string& right = file.tokens[key & UINT32_MAX];
    const std::string joined = left + right;
    file.merges.emplace_back(left, right);
    // Two pairs may spell the same token; it keeps its first id.
    const auto [at, is_new] = ids.emplace(joined, static_cast<int32_t>(file.tokens.size()));
    if (is_new) file.tokens.push_back(joined);
    pairs.merge(key, at->second);
  }
  file.end_of_text_id = vocabulary - 1;
  return tokenizer_json(file);
}

std::string BpeTrainer::config() const {
  return tokenizer_config_json({.tokens = {}, .merges = {}, .end_of_text = end_of_text});
}

}  // namespace rankine

#include "data/tokenizer/bpe_model.h"

#include <algorithm>

#include "base/error.h"
#include "data/tokenizer/unicode.h"

namespace rankine {
namespace {

// Up to this many parts, looking through all pairs is faster than a heap.
constexpr size_t short_word = 64;

using Candidate = BpeModel::Scratch::Candidate;

bool comes_later(const Candidate& a, const Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
}

}  // namespace

BpeModel::BpeModel(BpeModelParts parts) : parts_(std::move(parts)), merges_(parts_.merges.size()) {
  for (size_t rank = 0; rank < parts_.merges.size(); ++rank) {
    const auto& [pair, result] = parts_.merges[rank];
    merges_.insert(pair.first, pair.second, {static_cast<uint32_t>(rank), result});
  }
  parts_.merges = {};
  if (parts_.by_bytes)
    for (int byte = 0; byte < 256; ++byte)
      of_byte_.push_back(parts_.ids.at(std::string(1, static_cast<char>(byte))));
  else
    expect(parts_.unknown >= 0 || parts_.byte_tokens.size() == 256, "every character has a token");
  if (parts_.by_bytes && !parts_.whole_words) parts_.ids = {};
}

void BpeModel::start(std::string_view word, TokenIds& ids) const {
  ids.clear();
  if (!parts_.by_bytes) return start_chars(word, ids);
  for (const char byte : word) ids.push_back(of_byte_[static_cast<uint8_t>(byte)]);
}

void BpeModel::start_chars(std::string_view word, TokenIds& ids) const {
  bool after_unknown = false;
  for (size_t at = 0; at < word.size();) {
    const std::string_view text = word.substr(at, first_char(word.substr(at)).bytes);
    at += text.size();
    const auto known = parts_.ids.find(std::string(text));
    bool is_unknown = false;
    if (known != parts_.ids.end()) {
      ids.push_back(known->second);
    } else if (!parts_.byte_tokens.empty()) {
      for (const char byte : text) ids.push_back(parts_.byte_tokens[static_cast<uint8_t>(byte)]);
    } else {
      is_unknown = true;
      if (!after_unknown || !parts_.fuse_unknown) ids.push_back(parts_.unknown);
    }
    after_unknown = is_unknown;
  }
}

void BpeModel::encode(std::string_view word, Scratch& scratch, TokenIds& out) const {
  if (parts_.whole_words)
    if (const auto at = parts_.ids.find(std::string(word)); at != parts_.ids.end()) {
      out.push_back(at->second);
      return;
    }
  require(word.size() < INT32_MAX, ErrorKind::data,
          "a word of {} bytes cannot be encoded; cut the text into smaller parts", word.size());
  start(word, scratch.ids);
  if (scratch.ids.size() <= short_word)
    merge_short(scratch);
  else
    merge_long(scratch);
  out.insert(out.end(), scratch.ids.begin(), scratch.ids.end());
}

void BpeModel::merge_short(Scratch& scratch) const {
  TokenIds& ids = scratch.ids;
  std::vector<uint32_t>& ranks = scratch.ranks;  // of the pair that begins at each place
  size_t count = ids.size();
  ranks.assign(count, no_merge);
  for (size_t i = 0; i + 1 < count; ++i) ranks[i] = merges_.find(ids[i], ids[i + 1]).rank;
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i)
      if (ranks[i] < ranks[best]) best = i;
    if (ranks[best] == no_merge) break;
    ids[best] = merges_.find(ids[best], ids[best + 1]).result;
    --count;
    for (size_t i = best + 1; i < count; ++i) {
      ids[i] = ids[i + 1];
      ranks[i] = ranks[i + 1];
    }
    if (best > 0) ranks[best - 1] = merges_.find(ids[best - 1], ids[best]).rank;
    ranks[best] = best + 1 < count ? merges_.find(ids[best], ids[best + 1]).rank : no_merge;
  }
  ids.resize(count);
}

void BpeModel::merge_long(Scratch& scratch) const {
  TokenIds& ids = scratch.ids;
  std::vector<int32_t>&next = scratch.next, &previous = scratch.previous;
  std::vector<Scratch::Candidate>& heap = scratch.heap;
  const auto count = static_cast<int32_t>(ids.size());
  next.resize(ids.size());
  previous.resize(ids.size());
  heap.clear();
  const auto place = [](int32_t at) { return static_cast<size_t>(at); };
  const auto consider = [&](int32_t at) {
    if (at < 0 || next[place(at)] >= count) return false;
    const int32_t left = ids[place(at)], right = ids[place(next[place(at)])];
    const uint32_t rank = merges_.find(left, right).rank;
    if (rank != no_merge) heap.push_back({rank, at, left, right});
    return rank != no_merge;
  };
  for (int32_t i = 0; i < count; ++i) {
    next[place(i)] = i + 1;
    previous[place(i)] = i - 1;
  }
  for (int32_t i = 0; i < count; ++i) consider(i);
  std::make_heap(heap.begin(), heap.end(), comes_later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), comes_later);
    const Candidate best = heap.back();
    heap.pop_back();
    const int32_t right = next[place(best.at)];
    // A part that was joined to its left is -1 and has no pair any more.
    if (ids[place(best.at)] != best.left || right >= count || ids[place(right)] != best.right)
      continue;
    ids[place(best.at)] = merges_.find(best.left, best.right).result;
    ids[place(right)] = -1;
    next[place(best.at)] = next[place(right)];
    if (next[place(right)] < count) previous[place(next[place(right)])] = best.at;
    for (const int32_t at : {previous[place(best.at)], best.at})
      if (consider(at)) std::push_heap(heap.begin(), heap.end(), comes_later);
  }
  std::erase(ids, -1);
}

bool BpeModel::can_cut_before(std::string_view mark) const {
  if (parts_.whole_words) return false;
  for (const std::string& token : parts_.tokens)
    for (size_t at = token.find(mark, 1); at < token.size(); at = token.find(mark, at + 1))
      if (at < mark.size() || std::string_view(token).substr(at - mark.size(), mark.size()) != mark)
        return false;
  return parts_.ids.contains(std::string(mark));
}

}  // namespace rankine

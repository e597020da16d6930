#include "data/corpus.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace rankine {

Corpus::Corpus(TokenData data, uint64_t seq_length, int32_t end_token, std::string name)
    : data_(std::move(data)),
      name_(name.empty() ? data_.files().front().string() : std::move(name)),
      end_token_(data_.end_token() >= 0 ? data_.end_token() : end_token),
      seq_length_(seq_length) {
  expect(seq_length > 0, "a sequence length");
  if (data_.has_samples())
    pack_samples();
  else
    windows_ = (data_.count() - 1) / seq_length_;
  require(windows_ > 0, ErrorKind::data,
          "the data '{}' has {} tokens, less than one sequence of {} + 1; give more data or a "
          "smaller --seq-length",
          name_, data_.count(), seq_length_);
}

// Adds a sample to the windows or drops it. Of n tokens it takes n - 1 places, since nothing
// follows its last one; `first_target` is 0 where there is none.
void Corpus::pack_sample(uint64_t begin, uint64_t end, uint64_t first_target, uint64_t& used) {
  ++samples_;
  const uint64_t places = std::min(end - begin - 1, seq_length_);
  const uint64_t needed = first_target - begin;
  if (first_target == 0 || needed > places) {
    dropped_.begins.push_back(begin);
    if (first_target == 0) {
      ++dropped_.without_targets;
      return;
    }
    dropped_.least_length =
        dropped_.least_length == 0 ? needed : std::min(dropped_.least_length, needed);
    dropped_.most_length = std::max(dropped_.most_length, needed);
    return;
  }
  cut_samples_ += end - begin - 1 > seq_length_ ? 1 : 0;
  if (first_tokens_.empty() || used + places > seq_length_) {
    first_tokens_.push_back(begin);
    used = 0;
  }
  used += places;
}

void Corpus::pack_samples() {
  constexpr uint64_t chunk = 1 << 16;
  std::vector<uint32_t> tokens(chunk);
  uint64_t used = 0, begin = 0, first_target = 0;
  for (uint64_t at = 0; at < data_.count(); at += chunk) {
    const uint64_t count = std::min(chunk, data_.count() - at);
    data_.copy_marked(at, count, tokens.data());
    for (uint64_t i = 0; i < count; ++i) {
      if ((tokens[i] & sample_begin) != 0 && at + i > 0) {
        pack_sample(begin, at + i, first_target, used);
        begin = at + i;
        first_target = 0;
      } else if ((tokens[i] & sample_target) != 0 && first_target == 0) {
        first_target = at + i;  // the first of a sample is nobody's target
      }
    }
  }
  pack_sample(begin, data_.count(), first_target, used);
  require_samples();
  windows_ = first_tokens_.size();
  first_tokens_.push_back(data_.count());
}

void Corpus::require_samples() const {
  if (!first_tokens_.empty()) return;
  require(dropped_.without_targets < samples_, ErrorKind::data,
          "none of the {} samples of '{}' has a token that is to be learned; give samples with "
          "replies",
          samples_, name_);
  const uint64_t least = dropped_.least_length, most = dropped_.most_length;
  fail(ErrorKind::data,
       "none of the {} samples of '{}' has a token to learn within --seq-length {}: their replies "
       "begin behind it; give a --seq-length of at least {}{}",
       samples_, name_, seq_length_, least,
       most > least ? fmt::format(", or {} for all of them", most) : "");
}

std::vector<std::string> Corpus::warnings() const {
  std::vector<std::string> out;
  if (cut_samples_ > 0)
    out.push_back(fmt::format("'{}': {} samples are longer than --seq-length {} and cut", name_,
                              cut_samples_, seq_length_));
  const uint64_t behind = dropped_.begins.size() - dropped_.without_targets;
  if (behind > 0)
    out.push_back(fmt::format(
        "'{}': {} of {} samples are dropped: their replies begin behind --seq-length {}, so that "
        "nothing of them would be learned; a --seq-length of {} keeps all",
        name_, behind, samples_, seq_length_, dropped_.most_length));
  if (dropped_.without_targets > 0)
    out.push_back(
        fmt::format("'{}': {} of {} samples are dropped: no token of them is to be "
                    "learned",
                    name_, dropped_.without_targets, samples_));
  return out;
}

void Corpus::fill(uint64_t window, const WindowRow& row) const {
  expect(window < windows_, "a window of the corpus");
  if (data_.has_samples()) return fill_samples(window, row);
  data_.copy(window * seq_length_, seq_length_, row.inputs);
  data_.copy(window * seq_length_ + 1, seq_length_, row.targets);
  if (row.first_keys == nullptr) return;
  int32_t first = 0;
  for (uint64_t i = 0; i < seq_length_; ++i) {
    row.first_keys[i] = first;
    if (row.inputs[i] == end_token_) first = static_cast<int32_t>(i) + 1;
  }
}

void Corpus::fill_samples(uint64_t window, const WindowRow& row) const {
  const uint64_t end = first_tokens_[window + 1];
  auto dropped = std::ranges::lower_bound(dropped_.begins, first_tokens_[window]);
  uint64_t place = 0;
  uint32_t token = 0;
  int32_t first = 0;
  bool drops = false;  // the sample under way
  data_.copy_marked(first_tokens_[window], 1, &token);
  const auto put = [&](int32_t input, int32_t target) {
    row.inputs[place] = input;
    row.targets[place] = target;
    if (row.first_keys != nullptr) row.first_keys[place] = first;
    ++place;
  };
  for (uint64_t at = first_tokens_[window] + 1; at < end; ++at) {
    uint32_t next = 0;
    data_.copy_marked(at, 1, &next);
    if ((next & sample_begin) != 0) {
      first = static_cast<int32_t>(place);
      drops = dropped != dropped_.begins.end() && *dropped == at;
      if (drops) ++dropped;
    } else if (place < seq_length_ && !drops)
      put(static_cast<int32_t>(token & sample_id_mask),
          (next & sample_target) != 0 ? static_cast<int32_t>(next & sample_id_mask) : -1);
    token = next;
  }
  first = static_cast<int32_t>(place);
  while (place < seq_length_) put(0, -1);
}

}  // namespace rankine

#include "data/corpus.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace rankine {

Corpus::Corpus(TokenData data, uint64_t seq_length, int32_t end_token)
    : data_(std::move(data)),
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
          data_.files().front().string(), data_.count(), seq_length_);
}

// A sample of n tokens takes n - 1 places, since nothing follows its last token.
void Corpus::pack_samples() {
  constexpr uint64_t chunk = 1 << 16;
  std::vector<uint32_t> tokens(chunk);
  uint64_t used = 0, begin = 0;
  const auto end_sample = [&](uint64_t end) {
    const uint64_t places = std::min(end - begin - 1, seq_length_);
    cut_samples_ += end - begin - 1 > seq_length_ ? 1 : 0;
    if (first_tokens_.empty() || used + places > seq_length_) {
      first_tokens_.push_back(begin);
      used = 0;
    }
    used += places;
    begin = end;
  };
  for (uint64_t at = 0; at < data_.count(); at += chunk) {
    const uint64_t count = std::min(chunk, data_.count() - at);
    data_.copy_marked(at, count, tokens.data());
    for (uint64_t i = 0; i < count; ++i)
      if ((tokens[i] & sample_begin) != 0 && at + i > 0) end_sample(at + i);
  }
  end_sample(data_.count());
  windows_ = first_tokens_.size();
  first_tokens_.push_back(data_.count());
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
  uint64_t place = 0;
  uint32_t token = 0;
  int32_t first = 0;
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
    if ((next & sample_begin) != 0)
      first = static_cast<int32_t>(place);
    else if (place < seq_length_)
      put(static_cast<int32_t>(token & sample_id_mask),
          (next & sample_target) != 0 ? static_cast<int32_t>(next & sample_id_mask) : -1);
    token = next;
  }
  first = static_cast<int32_t>(place);
  while (place < seq_length_) put(0, -1);
}

}  // namespace rankine

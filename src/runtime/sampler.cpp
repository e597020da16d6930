#include "runtime/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace rankine {

void declare_options(OptionTable& table, SamplerOptions& o) {
  table.heading("Sampling");
  table.real({"temperature"}, &o.temperature, "divides the logits; 0 takes the likeliest token",
             {.least = 0});
  table.integer({"top-k"}, &o.top_k, "choose among the k likeliest tokens; 0: all", {.least = 0});
  table.real({"top-p"}, &o.top_p,
             "choose among the likeliest tokens that together have this probability; 1: all",
             {.least = 0, .most = 1, .above_least = true});
  table.integer({"seed"}, &o.seed, "the same prompt and seed give the same text", {.least = 0});
}

// Likelier tokens first; those after the first `sorted` are in no order.
void Sampler::sort_more(size_t sorted, size_t wanted) {
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  const auto at = [&](size_t i) { return candidates_.begin() + static_cast<std::ptrdiff_t>(i); };
  if (wanted < candidates_.size())
    std::nth_element(at(sorted), at(wanted), candidates_.end(), likelier);
  std::sort(at(sorted), at(wanted), likelier);
}

int32_t Sampler::choose(std::span<const float> logits, uint64_t position, uint64_t sample) {
  const auto top = std::max_element(logits.begin(), logits.end());
  if (options_.temperature == 0) return static_cast<int32_t>(top - logits.begin());
  const double highest = *top;
  const auto weight = [&](float logit) {
    return std::exp((static_cast<double>(logit) - highest) / options_.temperature);
  };
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i)
    candidates_.push_back({logits[i], static_cast<int32_t>(i)});
  size_t sorted = 0;
  if (options_.top_k > 0 && static_cast<size_t>(options_.top_k) < candidates_.size()) {
    sorted = static_cast<size_t>(options_.top_k);
    sort_more(0, sorted);
    candidates_.resize(sorted);
  }
  double total = 0;
  for (const Candidate& c : candidates_) total += weight(c.logit);
  // A vocabulary has many tokens of which only a few are likely: the others are not sorted.
  double kept = options_.top_p < 1 ? 0 : total;
  size_t count = options_.top_p < 1 ? 0 : candidates_.size();
  while (count < candidates_.size() && (count == 0 || kept < options_.top_p * total)) {
    if (count == sorted) {
      const size_t wanted = std::min(candidates_.size(), std::max<size_t>(64, 4 * sorted));
      sort_more(sorted, wanted);
      sorted = wanted;
    }
    kept += weight(candidates_[count++].logit);
  }
  const auto bits = philox(random_key(options_.seed, "sample"), position, sample);
  double left = kept * (static_cast<double>(bits[0]) * 0x1p-32);
  for (size_t i = 0; i < count; ++i) {
    left -= weight(candidates_[i].logit);
    if (left < 0) return candidates_[i].id;
  }
  return candidates_[count - 1].id;
}

}  // namespace rankine

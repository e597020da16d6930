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

int32_t Sampler::choose(std::span<const float> logits, uint64_t position) {
  if (options_.temperature == 0)
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i)
    candidates_.push_back({logits[i], static_cast<int32_t>(i)});
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  std::sort(candidates_.begin(), candidates_.end(), likelier);
  if (options_.top_k > 0)
    candidates_.resize(std::min(candidates_.size(), static_cast<size_t>(options_.top_k)));
  const double highest = candidates_[0].logit;
  const auto weight = [&](const Candidate& c) {
    return std::exp((static_cast<double>(c.logit) - highest) / options_.temperature);
  };
  double total = 0;
  for (const Candidate& c : candidates_) total += weight(c);
  double kept = 0;
  size_t count = 0;
  while (count < candidates_.size() && (count == 0 || kept < options_.top_p * total))
    kept += weight(candidates_[count++]);
  const auto bits = philox(random_key(options_.seed, "sample"), position);
  double left = kept * (static_cast<double>(bits[0]) * 0x1p-32);
  for (size_t i = 0; i < count; ++i) {
    left -= weight(candidates_[i]);
    if (left < 0) return candidates_[i].id;
  }
  return candidates_[count - 1].id;
}

}  // namespace rankine

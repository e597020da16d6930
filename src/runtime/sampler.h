#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/options.h"

namespace rankine {

struct SamplerOptions {
  double temperature = 0.8;  // 0: greedy
  double top_p = 0.95;       // 1: off
  int64_t top_k = 0;         // 0: off
  uint64_t seed = 0;
};
void declare_options(OptionTable& table, SamplerOptions& options);

// Chooses the next token from logits: temperature, then top-k, then top-p; the random number is a
// function of (seed, position, sample), so that the same prompt and seed give the same text.
class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options) : options_(options) {}
  int32_t choose(std::span<const float> logits, uint64_t position, uint64_t sample = 0);

 private:
  struct Candidate {
    float logit;
    int32_t id;
  };
  void sort_more(size_t sorted, size_t wanted);

  SamplerOptions options_;
  std::vector<Candidate> candidates_;
};

}  // namespace rankine

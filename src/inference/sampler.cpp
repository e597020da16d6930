#include "inference/sampler.h"

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

TokenChoice token_choice(const SamplerOptions& options, int64_t vocabulary,
                         std::span<const int32_t> forbidden) {
  return {.vocabulary = vocabulary,
          .temperature = options.temperature,
          .top_k = options.top_k,
          .top_p = options.top_p,
          .forbidden = forbidden};
}

double sampling_place(const SamplerOptions& options, uint64_t position, uint64_t sample) {
  return static_cast<double>(philox(random_key(options.seed, "sample"), position, sample)[0]) *
         0x1p-32;
}

}  // namespace rankine

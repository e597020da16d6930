#include "planner/model_states.h"

namespace rankine {

StateWidths state_widths(DType compute) {
  if (compute == DType::f32) return {.parameter = 4, .gradient = 4, .optimizer = 8};
  require(compute == DType::bf16 || compute == DType::f16, ErrorKind::usage,
          "training computes in f32, bf16 or f16, not in {}", dtype_name(compute));
  return {.parameter = 2, .gradient = 4, .optimizer = 12};
}

ModelStates model_states(int64_t parameters, int64_t data_degree, const ZeroPlan& plan,
                         const StateWidths& widths) {
  // Beyond any model, and its bytes still fit 64 bits.
  constexpr int64_t most = 100'000'000'000'000'000;
  require(1 <= parameters && parameters <= most, ErrorKind::usage,
          "a model of {} parameters; give a number from 1 to 1e17", parameters);
  require(data_degree >= 1, ErrorKind::usage, "--data-parallel {}: give 1 rank or more",
          data_degree);
  const auto held = [&](Held how, uint64_t width) {
    const auto whole = static_cast<uint64_t>(parameters),
               ranks = static_cast<uint64_t>(data_degree);
    return width * (how == Held::shard ? whole / ranks + (whole % ranks != 0) : whole);
  };
  return {.parameter_bytes = held(plan.params, widths.parameter),
          .gradient_bytes = held(plan.grads, widths.gradient),
          .optimizer_bytes = held(plan.optimizer, widths.optimizer)};
}

std::array<ModelStates, 4> zero_table(int64_t parameters, int64_t data_degree,
                                      const StateWidths& widths) {
  std::array<ModelStates, 4> table;
  for (size_t stage = 0; stage < table.size(); ++stage)
    table[stage] =
        model_states(parameters, data_degree, zero_stage(static_cast<int64_t>(stage)), widths);
  return table;
}

double optimizer_share(const StateWidths& widths) {
  return static_cast<double>(widths.optimizer) / static_cast<double>(widths.total());
}

}  // namespace rankine

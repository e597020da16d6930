#include "planner/step_costs.h"

namespace rankine {
namespace {

struct BlockCost {
  double forward, backward;  // seconds
  double elements;
  int64_t saved_bytes;
};

BlockCost cost_of(const BlockDescription& block, const BlockTraits& traits, double flops) {
  const double forward = (block.matmul_flops + block.attention_flops) / flops;
  const bool all_in_forward = traits.forward_adds_gradients || traits.tied != Action::none;
  int64_t saved = 0;
  for (const TensorSpec& spec : block.saved)
    saved += spec.shape.elements() * dtype_bytes(spec.dtype);
  return {all_in_forward ? 3 * forward : forward, all_in_forward ? 0 : 2 * forward,
          static_cast<double>(traits.parameter_elements), saved};
}

}  // namespace

CostTable step_costs(std::span<const BlockDescription> blocks,
                     const std::vector<BlockTraits>& traits, const HardwareRates& rates,
                     int data_degree, DType compute, const ZeroPlan& zero) {
  std::vector<BlockCost> costs;
  double elements = 0;
  for (size_t b = 0; b < blocks.size(); ++b) {
    costs.push_back(cost_of(blocks[b], traits[b], rates.flops));
    elements += costs.back().elements;
  }
  const double others = (data_degree - 1.0) / data_degree;
  const double reduce = 4 * others * (scatters_gradients(zero) ? 1 : 2) / rates.bytes_sent;
  const double gather = static_cast<double>(dtype_bytes(compute)) * others / rates.bytes_sent;
  const double owned = zero.optimizer == Held::shard ? elements / data_degree : elements;
  const double update = rates.memory_bytes > 0 ? 28 * owned / rates.memory_bytes : 0;
  const auto seconds = [costs, reduce, gather, update](int, const Action& action) {
    if (action.kind == ActionKind::update) return update;
    const BlockCost& block = costs[static_cast<size_t>(action.block)];
    switch (action.kind) {
      case ActionKind::forward:
        return block.forward;
      case ActionKind::backward:
        return block.backward;
      case ActionKind::reduce:
        return block.elements * reduce;
      case ActionKind::gather:
      case ActionKind::refresh:
        return block.elements * gather;
      default:
        return 0.0;
    }
  };
  const auto memory = [costs](int, const Action& action) -> int64_t {
    if (action.kind != ActionKind::forward && action.kind != ActionKind::backward) return 0;
    const int64_t saved = costs[static_cast<size_t>(action.block)].saved_bytes;
    return action.kind == ActionKind::forward ? saved : -saved;
  };
  return {seconds, memory};
}

}  // namespace rankine

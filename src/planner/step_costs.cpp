#include "planner/step_costs.h"

#include <algorithm>
#include <utility>

namespace rankine {
namespace {

struct BlockCost {
  double forward, backward_input, backward_weight, recompute;  // seconds
  double elements, output_bytes;
  int64_t saved_bytes;
};

double flops_of(const BlockDescription& block) {
  return block.matmul_flops + block.attention_flops;
}

BlockCost cost_of(const BlockDescription& block, const BlockTraits& traits,
                  const CostSetup& setup) {
  const double product = flops_of(block) / setup.rates.flops;
  const auto output =
      static_cast<double>(block.output.shape.elements() * dtype_bytes(block.output.dtype));
  const bool layer = block.attention_flops > 0;
  const double others = (setup.tensor_degree - 1.0) / setup.tensor_degree;
  const double sums =
      setup.tensor_degree > 1 && layer ? 2 * 2 * others * output / setup.rates.bytes_sent : 0;
  // The head's forward is part of its backward.
  const bool all_in_backward = !traits.forward_reads_parameters;
  int64_t saved = 0;
  for (const TensorSpec& spec : block.saved)
    saved += spec.shape.elements() * dtype_bytes(spec.dtype);
  return {all_in_backward ? 0 : product + sums,
          (all_in_backward ? 2 * product : product) + sums,
          product,
          block.recompute_flops / setup.rates.flops + (block.recompute_flops > 0 ? sums / 2 : 0),
          static_cast<double>(traits.parameter_elements),
          output,
          saved};
}

struct RankCost {
  std::vector<BlockCost> blocks;
  double elements = 0, transfer = 0;
};

// Of the activations of a micro-batch.
std::function<int64_t(int, const Action&)> memory_changes(std::vector<RankCost> costs) {
  return [costs = std::move(costs)](int r, const Action& action) -> int64_t {
    if (action.block == Action::none) return 0;
    const int64_t saved =
        costs[static_cast<size_t>(r)].blocks[static_cast<size_t>(action.block)].saved_bytes;
    if (action.kind == ActionKind::forward || action.kind == ActionKind::fetch) return saved;
    const bool last = action.kind == ActionKind::backward ||
                      action.kind == ActionKind::backward_weight ||
                      action.kind == ActionKind::store;
    return last ? -saved : 0;
  };
}

}  // namespace

CostTable step_costs(const std::vector<RankBlocks>& ranks, const CostSetup& setup) {
  std::vector<RankCost> costs;
  for (const RankBlocks& rank : ranks) {
    RankCost& cost = costs.emplace_back();
    for (size_t b = 0; b < rank.blocks.size(); ++b) {
      cost.blocks.push_back(cost_of(rank.blocks[b], rank.traits[b], setup));
      cost.elements += cost.blocks.back().elements;
      cost.transfer =
          std::max(cost.transfer, cost.blocks.back().output_bytes / setup.rates.bytes_sent);
    }
  }
  const double rate = setup.rates.bytes_sent;
  const double others = (setup.data_degree - 1.0) / setup.data_degree;
  const double reduce = 4 * others * (scatters_gradients(setup.zero) ? 1 : 2) / rate;
  const double gather = static_cast<double>(dtype_bytes(setup.compute)) * others / rate;
  const double share = setup.zero.optimizer == Held::shard ? 1.0 / setup.data_degree : 1;
  const double streams = setup.delayed_update ? 6 : 28;
  const double update =
      setup.rates.memory_bytes > 0 ? streams * share / setup.rates.memory_bytes : 0;
  const double copy = setup.rates.tier_bytes > 0 ? 1 / setup.rates.tier_bytes : 0;
  const double load = copy * static_cast<double>(dtype_bytes(setup.compute)) *
                      (setup.zero.params == Held::shard ? 1.0 / setup.data_degree : 1);
  const auto seconds = [costs, reduce, gather, update, copy, load](int r, const Action& action) {
    const RankCost& rank = costs[static_cast<size_t>(r)];
    if (action.kind == ActionKind::update) return update * rank.elements;
    if (action.block == Action::none) return rank.transfer;
    const BlockCost& block = rank.blocks[static_cast<size_t>(action.block)];
    switch (action.kind) {
      case ActionKind::forward:
        return block.forward;
      case ActionKind::recompute:
        return block.recompute;
      case ActionKind::backward:
        return block.backward_input + block.backward_weight;
      case ActionKind::backward_input:
        return block.backward_input;
      case ActionKind::backward_weight:
        return block.backward_weight;
      case ActionKind::reduce:
        return block.elements * reduce;
      case ActionKind::gather:
      case ActionKind::refresh:
        return block.elements * gather;
      case ActionKind::load:
        return block.elements * load;
      case ActionKind::store:
      case ActionKind::fetch:
        return static_cast<double>(block.saved_bytes) * copy;
      default:
        return 0.0;
    }
  };
  return {seconds, memory_changes(costs)};
}

std::vector<int64_t> balanced_layers(std::span<const BlockDescription> blocks, int stages) {
  const auto layers = static_cast<int64_t>(blocks.size()) - 2;
  const double head = flops_of(blocks.back()), layer = layers > 0 ? flops_of(blocks[1]) : 1;
  std::vector<int64_t> out(static_cast<size_t>(stages));
  // Stages between the first and the last are not empty.
  int64_t left = layers;
  for (size_t s = 1; s + 1 < out.size() && left > 0; ++s, --left) out[s] = 1;
  const auto cost = [&](size_t s) {
    return static_cast<double>(out[s]) * layer + (s + 1 == out.size() ? head : 0);
  };
  for (; left > 0; --left) {
    size_t least = 0;
    for (size_t s = 1; s < out.size(); ++s)
      if (cost(s) < cost(least)) least = s;
    ++out[least];
  }
  return out;
}

}  // namespace rankine

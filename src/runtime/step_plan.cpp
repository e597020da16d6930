#include "runtime/step_plan.h"

#include <algorithm>

namespace rankine {

std::vector<BlockTraits> traits_of(std::span<const BlockDescription> blocks,
                                   const ParamLayout& layout) {
  std::vector<BlockTraits> out;
  for (size_t b = 0; b < blocks.size(); ++b) {
    const ParamLayout::BlockLayout& block = layout.blocks()[b];
    BlockTraits traits{.parameter_elements = block.elements,
                       .backward_reads_parameters = blocks[b].backward_reads_parameters,
                       .forward_adds_gradients = blocks[b].forward_adds_gradients};
    if (block.groups.size() > block.own_groups)
      traits.tied = static_cast<int>(layout.block_of(block.groups.back()));
    out.push_back(traits);
  }
  return out;
}

StepPlan::StepPlan(const Request& request, std::span<const BlockDescription> blocks,
                   const ParamLayout& layout)
    : traits(traits_of(blocks, layout)) {
  const auto count = static_cast<int>(blocks.size());
  std::vector<int64_t> parameter_bytes, gradient_sizes;
  for (const BlockTraits& block : traits) {
    parameter_bytes.push_back(block.parameter_elements * dtype_bytes(request.compute));
    gradient_sizes.push_back(block.parameter_elements * 4);
  }
  program = add_reduces(
      expand_blocks(request.computations, count), traits,
      {.every_micro = request.every_micro, .bucket_elements = request.bucket_bytes / 4});
  evaluation = expand_blocks({{0, ActionKind::forward, 0}}, count);
  if (gathers_per_use(request.zero)) {
    program = add_gathers(program, traits);
    evaluation = add_gathers(evaluation, traits);
    gathers = gather_stays(program, parameter_bytes);
    evaluation_gathers = gather_stays(evaluation, parameter_bytes);
    gathered_bytes = std::max(place(gathers), place(evaluation_gathers));
  }
  if (gathers_after_step(request.zero)) program = add_refreshes(program, traits);
  if (request.every_micro) {
    // One computation of another block passes while a reduction is under way.
    gradients = gradient_stays(program, traits, gradient_sizes, 1);
    gradient_bytes = place(gradients);
  }
}

}  // namespace rankine

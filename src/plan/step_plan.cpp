#include "plan/step_plan.h"

#include <algorithm>
#include <numeric>

#include "schedule/waits.h"
#include "tensor/memory_plan.h"

namespace rankine {
namespace {

// What moves activations, between ranks or tiers.
bool moves_activations(ActionKind kind) {
  return kind == ActionKind::send_activation || kind == ActionKind::receive_activation ||
         kind == ActionKind::send_gradient || kind == ActionKind::receive_gradient ||
         kind == ActionKind::store || kind == ActionKind::fetch;
}

// Receives right in front of what consumes them: one micro-batch forwards has nothing to hide them
// behind, and the memory they fill may be another stage's until then.
Program with_late_receives(const Program& program) {
  Program out;
  for (const Action& action : program) {
    if (action.kind == ActionKind::receive_activation) continue;
    const Action receive{action.stage, ActionKind::receive_activation, action.micro};
    const bool awaited = std::ranges::find(program, receive) != program.end() &&
                         std::ranges::find(out, receive) == out.end();
    if (action.kind == ActionKind::forward && awaited) out.push_back(receive);
    out.push_back(action);
  }
  return out;
}

// One micro-batch forwards through all stages.
Schedule forward_schedule(const Schedule& schedule) {
  Schedule out{std::vector<Program>(schedule.ranks.size()), schedule.rank_of_stage};
  for (size_t stage = 0; stage < out.rank_of_stage.size(); ++stage)
    out.ranks[static_cast<size_t>(out.rank_of_stage[stage])].push_back(
        {static_cast<int>(stage), ActionKind::forward, 0});
  return out;
}

// The rank's stages and blocks in its own numbers.
std::vector<StageBlocks> own_stages(const StepPlan::Request& request, int blocks) {
  std::vector<StageBlocks> out;
  int first = 0;
  for (size_t stage = 0; stage < request.schedule.rank_of_stage.size(); ++stage) {
    if (request.schedule.rank_of_stage[stage] != request.pipeline_rank) continue;
    const int count =
        request.stages.empty() ? blocks : static_cast<int>(request.stages.at(out.size()).count);
    out.push_back({static_cast<int>(stage), first, count});
    first += count;
  }
  expect(first == blocks, "the stages of a rank are its blocks");
  return out;
}

}  // namespace

uint64_t aligned_bytes(const TensorSpec& spec) {
  const auto bytes = static_cast<uint64_t>(spec.shape.elements() * dtype_bytes(spec.dtype));
  return (bytes + MemoryPlan::alignment - 1) / MemoryPlan::alignment * MemoryPlan::alignment;
}

uint64_t total_bytes(std::span<const TensorSpec> specs) {
  uint64_t sum = 0;
  for (const TensorSpec& spec : specs) sum += aligned_bytes(spec);
  return sum;
}

std::vector<int64_t> stage_layers_of(const ModelConfig& config, const Schedule& schedule,
                                     const std::vector<int64_t>& asked) {
  const auto stages = static_cast<int64_t>(schedule.rank_of_stage.size());
  std::vector<int64_t> layers = asked;
  if (layers.empty())
    for (int64_t s = 0; s < stages; ++s)
      layers.push_back(config.layers / stages + (s < config.layers % stages ? 1 : 0));
  const int64_t sum = std::accumulate(layers.begin(), layers.end(), int64_t{0});
  require(static_cast<int64_t>(layers.size()) == stages && sum == config.layers, ErrorKind::usage,
          "--stage-layers has {} numbers that sum up to {}; {} stages need one each, and together "
          "the model's {} layers",
          layers.size(), sum, stages, config.layers);
  for (int64_t s = 0; s < stages; ++s)
    require(layers[static_cast<size_t>(s)] > 0 ||
                (layers[static_cast<size_t>(s)] == 0 && (s == 0 || s == stages - 1)),
            ErrorKind::usage,
            "stage {} of {} has {} of the model's {} layers; every stage between the first and the "
            "last needs one: use fewer stages, or --stage-layers",
            s, stages, layers[static_cast<size_t>(s)], config.layers);
  return layers;
}

std::vector<BlockTraits> traits_of(std::span<const BlockDescription> blocks,
                                   const ParamLayout& layout) {
  std::vector<BlockTraits> out;
  for (size_t b = 0; b < blocks.size(); ++b) {
    const ParamLayout::BlockLayout& block = layout.blocks()[b];
    BlockTraits traits{.parameter_elements = block.elements,
                       .forward_reads_parameters = blocks[b].forward_reads_parameters,
                       .backward_reads_parameters = blocks[b].backward_reads_parameters,
                       .splits_backward = blocks[b].splits_backward,
                       .recomputes = !blocks[b].recomputed.empty(),
                       .keeps = !blocks[b].saved.empty()};
    if (block.groups.size() > block.own_groups)
      traits.tied = static_cast<int>(layout.block_of(block.groups.back()));
    out.push_back(traits);
  }
  return out;
}

StepPlan::StepPlan(const Request& request, std::span<const BlockDescription> blocks,
                   const ParamLayout& layout)
    : stages(own_stages(request, static_cast<int>(blocks.size()))),
      rank_of_stage(request.schedule.rank_of_stage),
      traits(traits_of(blocks, layout)) {
  std::vector<int64_t> gradient_sizes;
  for (const BlockTraits& block : traits) gradient_sizes.push_back(block.parameter_elements * 4);
  const auto rank = static_cast<size_t>(request.pipeline_rank);
  const Schedule forwards = forward_schedule(request.schedule);
  std::vector<BlockTraits> evaluating = traits;
  for (BlockTraits& block : evaluating) block.forward_reads_parameters = true;
  evaluation = with_late_receives(add_transfers(
      expand_blocks(forwards.ranks[rank], stages, evaluating), forwards, request.pipeline_rank));
  if (!request.training) return;
  program = add_transfers(expand_blocks(request.schedule.ranks[rank], stages, traits),
                          request.schedule, request.pipeline_rank);
  program = add_recomputes(program, traits);
  if (request.offload.activations != Offload::none)
    program = add_stores(program, traits, request.offload.prefetch);
  program = add_reduces(
      program, traits,
      {.every_micro = request.every_micro, .bucket_elements = request.bucket_bytes / 4});
  if (gathers_per_use(request.zero) || request.offload.parameters != Offload::none)
    plan_gathers(request, evaluating);
  if (gathers_after_step(request.zero)) program = add_refreshes(program, traits);
  if (request.every_micro) {
    // One computation of another block passes while a reduction is under way.
    gradients = gradient_stays(program, traits, gradient_sizes, 1);
    gradient_bytes = place(gradients);
  }
  plan_activations(blocks, request.offload.activations);
  plan_waits();
}

void StepPlan::plan_gathers(const Request& request, const std::vector<BlockTraits>& evaluating) {
  std::vector<int64_t> bytes;
  for (const BlockTraits& block : traits)
    bytes.push_back(block.parameter_elements * dtype_bytes(request.compute));
  const bool loads = request.offload.parameters != Offload::none;
  const GatherPlan plan{.keep = request.gather_window,
                        .gathers = gathers_per_use(request.zero),
                        .load_ahead = loads ? request.offload.prefetch : 0};
  program = add_gathers(program, traits, plan);
  evaluation = add_gathers(evaluation, evaluating, plan);
  gathers = gather_stays(program, bytes);
  evaluation_gathers = gather_stays(evaluation, bytes);
  gathered_bytes = std::max(place(gathers), place(evaluation_gathers));
}

// Of what a tier on disk reads and writes in whole pages, stays are whole pages.
void StepPlan::plan_activations(std::span<const BlockDescription> blocks, Offload tier) {
  const int64_t unit =
      tier == Offload::disk ? static_cast<int64_t>(TierFile::alignment) : int64_t{1};
  const auto whole = [unit](uint64_t bytes) {
    return (static_cast<int64_t>(bytes) + unit - 1) / unit * unit;
  };
  std::vector<ActivationBytes> bytes;
  for (const BlockDescription& block : blocks)
    bytes.push_back(
        {.input = block.saved.empty() ? 0 : whole(aligned_bytes(block.saved[0])),
         .saved = block.saved.empty() ? 0 : whole(total_bytes(std::span(block.saved).subspan(1))),
         .recomputed = whole(total_bytes(block.recomputed)),
         .output = whole(aligned_bytes(block.output)),
         .pending = static_cast<int64_t>(total_bytes(block.pending))});
  activations = activation_stays(program, stages, bytes);
  saved_bytes = place(activations.saved);
  passing_bytes = place(activations.passing);
  stored_bytes = place(activations.stored);
}

// Model states look after their own collectives and copies; what moves activations remains.
void StepPlan::plan_waits() {
  waits = rankine::waits(program, traits, placed());
  for (std::vector<int>& earlier : waits)
    std::erase_if(earlier, [&](int index) {
      return !moves_activations(program[static_cast<size_t>(index)].kind);
    });
}

}  // namespace rankine

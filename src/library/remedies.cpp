#include "library/remedies.h"

#include <algorithm>

#include "base/text.h"
#include "machine/peak.h"

namespace rankine {

ExecutorSetup training_setup(const TrainOptions& o, int64_t micro_batch, DType dtype) {
  return {.shape = {micro_batch, o.run.seq_length},
          .compute = dtype,
          .purpose = Purpose::training,
          .positions = o.run.seq_length,
          .document_mask = o.data.document_mask};
}

LayoutRequest layout_request(const TrainOptions& o, const ModelConfig& config,
                             const MeshShape& shape, const ExecutorSetup& executor,
                             int64_t micros) {
  return {o.parallel, shape, static_cast<int>(micros), config, executor};
}

namespace {

// A change of settings that could make a plan fit.
struct Remedy {
  int64_t micro = 0;
  DType dtype = DType::f32;
  Recompute recompute = Recompute::none;
  Offload optimizer = Offload::none, parameters = Offload::none, activations = Offload::none;
};

// Which of optimizer, parameters and activations leave, in this order of trying.
constexpr bool offloads[][3] = {{false, false, false}, {true, false, false}, {false, false, true},
                                {true, false, true},   {true, true, false},  {true, true, true}};

// Those that cost least come first: other micro-batches, recomputation, then offloading, then also
// a 16-bit precision.
std::vector<Remedy> remedies_to_try(const TrainOptions& o, DType dtype) {
  const ParallelOptions& p = o.parallel;
  std::vector<Remedy> out;
  for (const DType candidate : {dtype, DType::bf16})
    for (const Offload to : {Offload::host, Offload::disk})
      for (const auto& [optimizer, parameters, activations] : offloads) {
        const auto tier = [to](Offload asked, bool leaves) {
          return asked == Offload::none && leaves ? to : asked;
        };
        for (const Recompute recompute : {p.recompute, Recompute::full})
          for (int64_t micro = o.run.micro_batch_size; micro > 0; micro /= 2)
            out.push_back({micro, candidate, recompute, tier(p.offload_optimizer, optimizer),
                           tier(p.offload_parameters, parameters),
                           tier(p.offload_activations, activations)});
      }
  return out;
}

ParallelOptions with(const ParallelOptions& options, const Remedy& remedy) {
  ParallelOptions out = options;
  out.recompute = remedy.recompute;
  out.offload_optimizer = remedy.optimizer;
  out.offload_parameters = remedy.parameters;
  out.offload_activations = remedy.activations;
  for (const Offload tier : {remedy.optimizer, remedy.parameters, remedy.activations})
    if (tier == Offload::disk && out.offload_dir.empty()) out.offload_dir = "FOLDER";
  return out;
}

// Floating-point operations of one micro-batch that recomputation adds, and those without it.
struct Flops {
  double again = 0, all = 0;
};
Flops flops_of(const Engine& engine) {
  Flops flops;
  for (const BlockDescription& block : engine.executor().descriptions()) {
    flops.again += block.recompute_flops;
    flops.all += 3 * (block.matmul_flops + block.attention_flops);
  }
  return flops;
}

// Bytes that a step moves between tiers, of what the changes offload.
uint64_t optimizer_traffic(const Engine& engine, Offload tier) {
  const ParamLayout& layout = engine.store().layout();
  int64_t reductions = 0;
  for (const Action& action : engine.step_plan().program)
    if (action.kind == ActionKind::reduce)
      reductions += layout.blocks()[static_cast<size_t>(action.block)].shard;
  // Of a file the sums are read and written for each contribution but the first, which is written,
  // and read once more by the update, which reads and writes all other states.
  if (tier == Offload::disk) return static_cast<uint64_t>(8 * reductions + 24 * layout.owned());
  const auto width = dtype_bytes(engine.setup().compute);
  return static_cast<uint64_t>(4 * reductions + width * layout.owned());
}

uint64_t parameter_traffic(const Engine& engine, Offload tier) {
  const auto updated = engine.store().layout().owned() * dtype_bytes(engine.setup().compute);
  uint64_t bytes = tier == Offload::disk ? static_cast<uint64_t>(updated) : 0;
  for (const Action& action : engine.step_plan().program)
    if (action.kind == ActionKind::load) {
      const ParamLayout::BlockLayout& block =
          engine.store().layout().blocks()[static_cast<size_t>(action.block)];
      const int64_t elements = engine.store().params_whole() ? block.elements : block.shard;
      bytes += static_cast<uint64_t>(elements * dtype_bytes(engine.setup().compute));
    }
  return bytes;
}

uint64_t activation_traffic(const Engine& engine) {
  uint64_t bytes = 0;
  for (const Stay& stay : engine.step_plan().activations.stored)
    bytes += 2 * static_cast<uint64_t>(stay.bytes);
  return bytes;
}

std::string_view word_of(Recompute mode) {
  return mode == Recompute::none ? "none" : mode == Recompute::selective ? "selective" : "full";
}

// What is taken for granted of a machine whose tiers were not measured, bytes per second.
constexpr double host_rate = 10e9, disk_rate = 1e9;

// The settings, each with what it costs: products at `peak`, copies at the rates above, both at
// worst, since they may go on beside each other.
std::string settings_text(const ParallelOptions& asked, const Remedy& remedy, int64_t accumulation,
                          const Engine& engine, double peak) {
  std::string text = fmt::format("--micro-batch-size {} --accumulation {} --precision {}",
                                 remedy.micro, accumulation, dtype_name(remedy.dtype));
  const Flops flops = flops_of(engine);
  const auto micros = static_cast<double>(accumulation);
  if (remedy.recompute != asked.recompute)
    text += fmt::format(" --recompute {} (about {:.0f} % more products, {} of {} a step)",
                        word_of(remedy.recompute), 100 * flops.again / flops.all,
                        format_seconds(flops.again * micros / peak),
                        format_seconds((flops.all + flops.again) * micros / peak));
  bool on_disk = false;
  const auto add = [&](Offload before, Offload now, const char* what, uint64_t bytes) {
    if (before == now) return;
    const bool disk = now == Offload::disk;
    text +=
        fmt::format(" --offload-{} {} (each step copies {} between the tiers, {} at {:.0f} GB/s)",
                    what, disk ? "disk" : "host", format_bytes(bytes),
                    format_seconds(static_cast<double>(bytes) / (disk ? disk_rate : host_rate)),
                    (disk ? disk_rate : host_rate) / 1e9);
    on_disk = on_disk || disk;
  };
  add(asked.offload_optimizer, remedy.optimizer, "optimizer",
      optimizer_traffic(engine, remedy.optimizer));
  add(asked.offload_parameters, remedy.parameters, "parameters",
      parameter_traffic(engine, remedy.parameters));
  add(asked.offload_activations, remedy.activations, "activations", activation_traffic(engine));
  if (on_disk && asked.offload_dir.empty()) text += " --offload-dir FOLDER";
  return text;
}

bool fits(const PlannedLayout& layout, const Shortage& shortage) {
  for (int p = 0; p < shortage.mesh.degree_of(Axis::pipeline); ++p)
    if (!shortage.limits.hold(layout.of_stage_rank(p).plan())) return false;
  return true;
}

}  // namespace

std::string remedies(Ops& ops, const Shortage& shortage) {
  const TrainOptions& o = shortage.options;
  const MeshShape& mesh = shortage.mesh;
  uint64_t least = 0;
  const int64_t share = o.run.global_batch_size / mesh.degree_of(Axis::data);
  for (const Remedy& remedy : remedies_to_try(o, shortage.dtype)) {
    if (share % remedy.micro != 0) continue;
    TrainOptions changed = o;
    changed.parallel = with(o.parallel, remedy);
    const PlannedLayout layout(
        layout_request(changed, shortage.config, mesh,
                       training_setup(o, remedy.micro, remedy.dtype), share / remedy.micro),
        ops);
    least = layout.most_bytes();
    if (fits(layout, shortage))
      return fmt::format("it would fit with {}: {}",
                         settings_text(o.parallel, remedy, share / remedy.micro, layout.of_rank(0),
                                       fastest_product(ops, remedy.dtype, 1).flops),
                         format_bytes(least));
  }
  return fmt::format(
      "no micro-batch size fits{}; choose a smaller --seq-length (now {}) or --model{}",
      least > 0 ? fmt::format(" (the smallest needs {})", format_bytes(least)) : "",
      o.run.seq_length,
      mesh.degree_of(Axis::data) > 1 && o.parallel.zero < 3
          ? fmt::format(", or a higher --zero stage (now {})", o.parallel.zero)
          : "");
}

}  // namespace rankine

#include <algorithm>

#include "base/random.h"
#include "bench/bench.h"
#include "library/layout.h"
#include "machine/peak.h"
#include "machine/process.h"
#include "ops/backend.h"
#include "runtime/engine.h"
#include "runtime/metrics.h"
#include "runtime/trainer.h"

namespace rankine {
namespace {

constexpr double peak_window_seconds = 2;

std::vector<int32_t> random_tokens(int64_t count, int64_t vocabulary) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<int32_t>(philox(random_key(1, "bench"), i)[0] %
                                  static_cast<uint64_t>(vocabulary));
  return ids;
}

struct AdamwFigures {
  double bytes, share;  // per second; of the memory bandwidth measured in turn with it
};

// AdamW alone over all owned parameters: 28 bytes an element, 30 with a 16-bit copy.
AdamwFigures measure_adamw(Engine& engine, int rounds) {
  std::vector<double> rates, shares;
  Ops& ops = engine.executor().ops();
  const AdamWStep step = adamw_step({}, 1, 0, 1);
  const double bytes = (engine.setup().compute == DType::f32 ? 28 : 30) *
                       static_cast<double>(engine.store().layout().owned());
  for (int round = 0; round < rounds; ++round) {
    const double bandwidth = measure_stream_bytes(ops.threads(), 1);
    const double start = monotonic_seconds();
    engine.store().update(step);
    ops.synchronize();
    rates.push_back(bytes / (monotonic_seconds() - start));
    shares.push_back(rates.back() / bandwidth);
  }
  return {median(rates), median(shares)};
}

ExecutorSetup setup_of(const BenchOptions& o, DType dtype) {
  return {.shape = {o.micro_batch_size, o.seq_length},
          .compute = dtype,
          .purpose = Purpose::training,
          .positions = o.seq_length};
}

void require_room(const BenchOptions& o, const MemoryPlan& plan, int local_ranks) {
  require_memory(plan, {.all = o.memory_limit > 0 ? o.memory_limit : memory_share(local_ranks)},
                 "to make it fit: a smaller --micro-batch-size, --seq-length or --model");
}

}  // namespace

void check_memory(const BenchOptions& o, const ModelConfig& config, DType dtype,
                  const MeshShape& mesh) {
  const auto ops =
      make_backend({o.device, threads_of_first_rank(o.threads, mesh.world()), o.instruction_set})
          .ops;
  const PlannedLayout layout(
      {o.parallel, mesh, static_cast<int>(o.accumulation), config, setup_of(o, dtype)}, *ops);
  for (int stage = 0; stage < mesh.degree_of(Axis::pipeline); ++stage)
    require_room(o, layout.of_stage_rank(stage).plan(), mesh.world());
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

StepFigures measure_training(const BenchOptions& o, const ModelConfig& config, DType dtype,
                             const Rank& rank) {
  const Mesh mesh(rank.world, mesh_of(o.parallel, rank.world.size()));
  Communicator& ranks = *mesh.world;
  const auto cpu_ops = make_backend({o.device, rank.threads, o.instruction_set}).ops;
  TimedOps timed(*cpu_ops);
  Ops* ops = o.profile ? static_cast<Ops*>(&timed) : cpu_ops.get();
  const auto peak_ops = make_backend({o.device, rank.threads, o.instruction_set}).ops;
  Engine engine(*ops, config, setup_of(o, dtype),
                balanced_step(o.parallel, static_cast<int>(o.accumulation), mesh, config, *ops,
                              {o.micro_batch_size, o.seq_length}));
  require_room(o, engine.plan(), rank.local_ranks);
  engine.allocate();
  engine.store().initialise(1);
  Trainer trainer(engine, {{}, 1000, 1, dtype == DType::f16});
  const int64_t tokens = o.micro_batch_size * o.seq_length * o.accumulation;
  const std::vector<int32_t> ids = random_tokens(tokens + 1, config.vocabulary);
  const auto count = static_cast<size_t>(tokens);
  const std::span<const int32_t> inputs = std::span(ids).first(count),
                                 targets = std::span(ids).subspan(1);
  const double flops = training_flops_per_token(config, o.seq_length) *
                       static_cast<double>(tokens * mesh.data->size());
  const auto total = [&](double value) {
    ranks.all_reduce({&value, DType::f64, Shape{1}}, Reduction::sum, "figures").wait();
    return value;
  };
  std::vector<double> seconds, shares, peaks;
  uint64_t resident = 0;
  AxisTraffic sent;
  TierTraffic copied;
  // A step is held against the products' mean rate over windows right before and after it, so that
  // what disturbs the machine for seconds disturbs both.
  const Product product = fastest_product(*peak_ops, dtype, 3).product;
  double before = total(sustained_product_flops(*peak_ops, product, peak_window_seconds));
  for (int64_t step = 1; step <= o.steps + 2; ++step) {
    ranks.barrier("step").wait();
    const AxisTraffic sent_before = axis_traffic(mesh);
    const TierTraffic copied_before = engine.tier_traffic();
    const double start = monotonic_seconds();
    timed.reset();
    trainer.step(step, inputs, targets);
    for (size_t b = 0; b < engine.step_plan().traits.size(); ++b) engine.store().wait_parameters(b);
    const double taken = monotonic_seconds() - start;
    sent = axis_traffic(mesh) - sent_before;
    copied = engine.tier_traffic() - copied_before;
    if (step == 1) resident = resident_memory().now;
    const double after = total(sustained_product_flops(*peak_ops, product, peak_window_seconds));
    const double peak = 2 / (1 / before + 1 / after);
    before = after;
    if (step <= 2) continue;
    seconds.push_back(taken);
    peaks.push_back(peak);
    shares.push_back(flops / taken / peak);
  }
  const std::vector<TimedOps::Line> profile = timed.lines();
  const AdamwFigures adamw = measure_adamw(engine, 9);
  auto most = static_cast<int64_t>(resident);
  ranks.all_reduce({&most, DType::i64, Shape{1}}, Reduction::max, "figures").wait();
  const MemoryPlan& plan = engine.plan();
  return {median(seconds),
          static_cast<double>(tokens * mesh.data->size()) / median(seconds),
          median(shares),
          flops / std::ranges::min(seconds) / std::ranges::max(peaks),
          median(peaks),
          adamw.bytes,
          adamw.share,
          engine.arena().peak_bytes() + engine.host_arena().peak_bytes(),
          plan.peak_bytes(Tier::device) + plan.peak_bytes(Tier::host),
          resident,
          static_cast<uint64_t>(most),
          sent,
          copied,
          profile};
}

}  // namespace rankine

#pragma once
#include <cmath>
#include <map>

#include "comm/thread_world.h"
#include "runtime/metrics.h"
#include "support/tiny_models.h"
#include "support/training.h"

// The same few training steps on any number of ranks, for comparison by global tensor names.
namespace rankine::test {

struct Layout {
  int data = 1;
  int zero = 0;
  bool strict = false;
  int64_t bucket_bytes = 0;
  int tensor = 1, pipeline = 1;
  bool sequence = false;
  ScheduleKind schedule = ScheduleKind::one_forward_one_backward;
  int virtual_stages = 1;
  int gather_window = 2;
  std::vector<int64_t> stage_layers = {};
  Recompute recompute = Recompute::none;
  int64_t recompute_layers = -1;
  OffloadSetup offload = {};

  MeshShape mesh() const { return {{pipeline, data, tensor}}; }
};

inline std::string to_string(const OffloadSetup& o) {
  constexpr const char* tiers[] = {"device", "host", "disk"};
  const auto tier = [&](Offload offload) { return tiers[static_cast<size_t>(offload)]; };
  return fmt::format(", optimizer on {}, parameters on {}, activations on {}, delayed from {}",
                     tier(o.optimizer), tier(o.parameters), tier(o.activations), o.delayed_update);
}

inline std::string to_string(const Layout& l) {
  return fmt::format("data {} x tensor {}{} x pipeline {} ({} x{}), stage {}{}", l.data, l.tensor,
                     l.sequence ? " with sequence" : "", l.pipeline, schedule_name(l.schedule),
                     l.virtual_stages, l.zero, l.strict ? ", strict" : "") +
         to_string(l.offload);
}

struct Workload {
  ModelConfig config;
  MicroShape shape{2, 12};
  int micros = 8;  // of all ranks
  DType compute = DType::f32;
  int64_t steps = 3;
  OptimizerOptions optimizer = {};
  double lr = 1e-3;
  bool validates = false;  // a loss without gradients at the end, behind those of the steps
};

struct Outcome {
  std::vector<double> losses, norms;
  std::map<std::string, std::vector<float>> weights;  // whole tensors
  std::vector<AxisTraffic> traffic;                   // of the last step, per rank
  int skipped = 0;                                    // steps
  double loss_scale = 0;                              // of the last step
  int64_t elements = 0;                               // of all blocks, with padding
};

// Adds the pieces that one rank holds to whole tensors.
inline void collect(const std::vector<NamedTensor>& pieces, Ops& ops,
                    std::map<std::string, std::vector<float>>& whole) {
  for (const NamedTensor& piece : pieces) {
    std::vector<float>& tensor = whole[piece.name];
    tensor.resize(static_cast<size_t>(piece.shape.elements()));
    const std::vector<float> values = host_copy(ops, piece.data);
    for_each_shared_run(rankine::whole(piece.shape), piece.box,
                        [&](int64_t to, int64_t from, int64_t count) {
                          std::copy_n(values.begin() + from, count, tensor.begin() + to);
                        });
  }
}

inline StepSetup step_of(const Layout& layout, int micros, const Mesh& mesh) {
  OffloadSetup offload = layout.offload;
  offload.rank = mesh.rank;
  return {.schedule = make_schedule(layout.schedule, {.ranks = layout.pipeline,
                                                      .micros = micros,
                                                      .virtual_stages = layout.virtual_stages}),
          .stage_layers = layout.stage_layers,
          .zero = zero_stage(layout.zero),
          .strict = layout.strict,
          .sequence_parallel = layout.sequence,
          .bucket_bytes = layout.bucket_bytes,
          .gather_window = layout.gather_window,
          .recompute = layout.recompute,
          .recompute_layers = layout.recompute_layers,
          .offload = offload,
          .mesh = &mesh};
}

// One rank's engine and steps; global micro-batch m is taken by data rank m % data ranks.
struct RankTraining {
  RankTraining(const Mesh& whole, const Workload& work, const Layout& layout, int threads = 1)
      : mesh(whole),
        workload(work),
        micros(work.micros / whole.data->size()),
        ops(make_test_ops(threads)),
        engine(*ops, work.config,
               {.shape = work.shape,
                .compute = work.compute,
                .purpose = Purpose::training,
                .positions = work.shape.tokens},
               step_of(layout, micros, whole)) {
    engine.allocate();
    engine.store().initialise(7);
    trainer = std::make_unique<Trainer>(
        engine, Trainer::Setup{work.optimizer, 1000, 7, work.compute == DType::f16});
  }

  StepReport step(int64_t number) {
    start(number);
    return *trainer->finished(true);
  }

  void start(int64_t number) {
    const auto tokens = static_cast<size_t>(workload.shape.rows());
    std::vector<int32_t> ids, targets;
    for (int m = 0; m < micros; ++m) {
      const int global = m * mesh.data->size() + mesh.data->rank();
      const auto seed = static_cast<uint64_t>(number * 1000 + global);
      const std::vector<int32_t> x = random_ids(tokens + 1, workload.config.vocabulary, seed);
      ids.insert(ids.end(), x.begin(), x.end() - 1);
      targets.insert(targets.end(), x.begin() + 1, x.end());
      // Micro-batches of unequal numbers of valid tokens: averages of averages would show.
      for (int ignored = 0; ignored < global % 3; ++ignored)
        targets[targets.size() - 1 - static_cast<size_t>(ignored)] = -1;
    }
    trainer->start(number, workload.lr, ids, targets);
  }

  // The same micro-batch on all data ranks; the sum of all ranks' losses.
  double validate() {
    const auto tokens = static_cast<size_t>(workload.shape.rows());
    const std::vector<int32_t> x = random_ids(tokens + 1, workload.config.vocabulary, 99);
    double loss = engine.executor().evaluate(std::span(x).first(tokens), std::span(x).subspan(1),
                                             workload.shape);
    mesh.world->all_reduce({&loss, DType::f64, Shape{1}}, Reduction::sum, "loss").wait();
    return loss;
  }

  const Mesh& mesh;
  Workload workload;
  int micros;
  std::unique_ptr<Ops> ops;
  Engine engine;
  std::unique_ptr<Trainer> trainer;
};

// Trains as this rank of the mesh does; the outcome's weights are what counts of what it holds.
inline Outcome train_rank(const Mesh& mesh, const Workload& work, const Layout& layout) {
  RankTraining rank(mesh, work, layout);
  Outcome out;
  for (int64_t step = 1; step <= work.steps; ++step) {
    const AxisTraffic before = axis_traffic(mesh);
    const StepReport report = rank.step(step);
    out.losses.push_back(report.loss);
    out.norms.push_back(report.grad_norm);
    out.skipped += report.skipped ? 1 : 0;
    out.loss_scale = report.loss_scale;
    out.traffic = {axis_traffic(mesh) - before};
  }
  if (work.validates) out.losses.push_back(rank.validate());
  out.elements = rank.engine.store().elements();
  for (size_t b = 0; b < rank.engine.step_plan().traits.size(); ++b)
    rank.engine.store().wait_parameters(b);
  if (rank.engine.store().counts())
    collect(rank.engine.store().weights(Copies::counted), *rank.ops, out.weights);
  EXPECT_EQ(rank.engine.arena().peak_bytes(), rank.engine.plan().peak_bytes(Tier::device));
  EXPECT_TRUE(rank.engine.arena().unused().empty());
  EXPECT_EQ(rank.engine.host_arena().peak_bytes(), rank.engine.plan().peak_bytes(Tier::host));
  EXPECT_TRUE(rank.engine.host_arena().unused().empty());
  return out;
}

inline Outcome train_as_threads(const Workload& work, const Layout& layout) {
  Outcome joined;
  std::mutex mutex;
  const MeshShape shape = layout.mesh();
  joined.traffic.resize(static_cast<size_t>(shape.world()));
  const TensorSplit split{0, layout.tensor, false};
  run_ranks_as_threads(shape.world(), {.mesh = shape}, [&](World& world) {
    const Mesh mesh(world, shape, split.kv_replicas(work.config));
    Outcome mine = train_rank(mesh, work, layout);
    const std::lock_guard lock(mutex);
    joined.traffic[static_cast<size_t>(mesh.rank)] = mine.traffic[0];
    joined.elements = std::max(joined.elements, mine.elements);
    joined.skipped = mine.skipped;
    joined.loss_scale = mine.loss_scale;
    if (joined.losses.empty()) {
      joined.losses = mine.losses;
      joined.norms = mine.norms;
    }
    EXPECT_EQ(joined.losses, mine.losses) << "all ranks report the same";
    for (size_t s = 0; s < mine.norms.size(); ++s)
      EXPECT_TRUE(joined.norms[s] == mine.norms[s] ||
                  (std::isnan(joined.norms[s]) && std::isnan(mine.norms[s])));
    // Pieces of different ranks fill different elements; the rest of each tensor is still zero.
    for (auto& [name, values] : mine.weights) {
      std::vector<float>& whole = joined.weights[name];
      if (whole.empty()) whole.resize(values.size());
      for (size_t i = 0; i < values.size(); ++i)
        if (values[i] != 0) whole[i] = values[i];
    }
  });
  return joined;
}

// Losses, norms and every parameter by name.
inline void expect_close(const Outcome& out, const Outcome& reference, double tolerance) {
  for (size_t s = 0; s < reference.losses.size(); ++s) {
    EXPECT_NEAR(out.losses[s], reference.losses[s], tolerance * reference.losses[s]);
    EXPECT_NEAR(out.norms[s], reference.norms[s], 10 * tolerance * reference.norms[s]);
  }
  ASSERT_EQ(out.weights.size(), reference.weights.size());
  for (const auto& [name, values] : reference.weights) {
    const std::vector<float>& other = out.weights.at(name);
    ASSERT_EQ(other.size(), values.size()) << name;
    double difference = 0, length = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(static_cast<double>(other[i]) - static_cast<double>(values[i]), 2);
      length += std::pow(static_cast<double>(values[i]), 2);
    }
    // Relative to the tensor and to the distance that three steps can move it.
    const double moved = 1e-3 * 3 * std::sqrt(static_cast<double>(values.size()));
    EXPECT_LE(std::sqrt(difference), 20 * tolerance * (std::sqrt(length) + moved)) << name;
  }
}

}  // namespace rankine::test

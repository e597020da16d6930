#pragma once
#include <cmath>
#include <map>

#include "comm/thread_world.h"
#include "support/tiny_models.h"
#include "support/training.h"

// The same few training steps on any number of ranks, for comparison by global tensor names.
namespace rankine::test {

struct Layout {
  int data = 1;
  int zero = 0;
  bool strict = false;
  int64_t bucket_bytes = 0;
};

struct Workload {
  ModelConfig config;
  MicroShape shape{2, 12};
  int micros = 8;  // of all ranks
  DType compute = DType::f32;
  int64_t steps = 3;
  OptimizerOptions optimizer = {};
  double lr = 1e-3;
};

struct Outcome {
  std::vector<double> losses, norms;
  std::map<std::string, std::vector<float>> weights;  // whole tensors
  std::vector<uint64_t> bytes_sent;                   // of the last step, per rank
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

// One rank's engine and steps; global micro-batch m is taken by rank m % ranks.
struct RankTraining {
  RankTraining(Communicator& data, const Workload& work, const Layout& layout, int threads = 1)
      : group(data),
        workload(work),
        micros(work.micros / data.size()),
        ops(make_cpu_ops(threads)),
        engine(*ops, work.config,
               {.shape = work.shape,
                .compute = work.compute,
                .purpose = Purpose::training,
                .positions = work.shape.tokens},
               {.computations = accumulation_program(micros),
                .zero = zero_stage(layout.zero),
                .strict = layout.strict,
                .bucket_bytes = layout.bucket_bytes,
                .data = &data}) {
    engine.allocate();
    engine.store().initialise(7);
    trainer = std::make_unique<Trainer>(
        engine.executor(), engine.store(),
        Trainer::Setup{work.optimizer, 1000, 7, work.compute == DType::f16});
  }

  StepReport step(int64_t number) {
    const auto tokens = static_cast<size_t>(workload.shape.rows());
    std::vector<int32_t> ids, targets;
    for (int m = 0; m < micros; ++m) {
      const int global = m * group.size() + group.rank();
      const auto seed = static_cast<uint64_t>(number * 1000 + global);
      const std::vector<int32_t> x = random_ids(tokens + 1, workload.config.vocabulary, seed);
      ids.insert(ids.end(), x.begin(), x.end() - 1);
      targets.insert(targets.end(), x.begin() + 1, x.end());
      // Micro-batches of unequal numbers of valid tokens: averages of averages would show.
      for (int ignored = 0; ignored < global % 3; ++ignored)
        targets[targets.size() - 1 - static_cast<size_t>(ignored)] = -1;
    }
    return trainer->step(number, workload.lr, ids, targets);
  }

  Communicator& group;
  Workload workload;
  int micros;
  std::unique_ptr<Ops> ops;
  Engine engine;
  std::unique_ptr<Trainer> trainer;
};

// Trains on `group`; `merge` is called once per rank with what it holds.
inline Outcome train_rank(Communicator& group, const Workload& work, const Layout& layout) {
  RankTraining rank(group, work, layout);
  Outcome out;
  for (int64_t step = 1; step <= work.steps; ++step) {
    const uint64_t before = group.bytes_sent();
    const StepReport report = rank.step(step);
    out.losses.push_back(report.loss);
    out.norms.push_back(report.grad_norm);
    out.skipped += report.skipped ? 1 : 0;
    out.loss_scale = report.loss_scale;
    out.bytes_sent = {group.bytes_sent() - before};
  }
  out.elements = rank.engine.store().elements();
  collect(rank.engine.store().weights(), *rank.ops, out.weights);
  EXPECT_EQ(rank.engine.arena().peak_bytes(), rank.engine.plan().peak_bytes(Tier::device));
  EXPECT_TRUE(rank.engine.arena().unused().empty());
  return out;
}

inline Outcome train_as_threads(const Workload& work, const Layout& layout) {
  Outcome joined;
  std::mutex mutex;
  joined.bytes_sent.resize(static_cast<size_t>(layout.data));
  const MeshShape shape{{1, layout.data, 1}};
  run_ranks_as_threads(layout.data, {.mesh = shape}, [&](World& world) {
    const Mesh mesh(world, shape);
    Outcome mine = train_rank(*mesh.data, work, layout);
    const std::lock_guard lock(mutex);
    joined.bytes_sent[static_cast<size_t>(mesh.rank)] = mine.bytes_sent[0];
    joined.elements = mine.elements;
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

}  // namespace rankine::test

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/finite.h"
#include "support/parallel_training.h"
#include "support/temporary_folder.h"

// Steps without a token to learn, and weights that are not finite, on every kind of mesh.
namespace rankine::test {
namespace {

using enum Offload;

constexpr const char* spoiled = "layers.2.mlp.down.weight";

Workload workload(DType compute) {
  ModelConfig config = tiny_models()[2].config;
  config.layers = 4;
  return {.config = config, .shape = {1, 12}, .micros = 4, .compute = compute};
}

std::vector<Layout> layouts(const TemporaryFolder& folder) {
  OffloadSetup disk_only{.optimizer = disk, .parameters = disk, .activations = disk};
  disk_only.folder = folder.path();
  return {{},
          {.data = 2, .zero = 1},
          {.data = 2, .zero = 3, .strict = true},
          {.tensor = 2, .sequence = true},
          {.data = 2, .zero = 2, .pipeline = 2},
          {.pipeline = 2, .schedule = ScheduleKind::interleaved, .virtual_stages = 2},
          {.pipeline = 2, .schedule = ScheduleKind::zb_v},
          {.pipeline = 2, .schedule = ScheduleKind::zero_bubble, .recompute = Recompute::full},
          {.data = 2, .zero = 3, .tensor = 2, .offload = {.optimizer = host, .parameters = host}},
          {.offload = {.optimizer = host, .delayed_update = 1}},
          {.data = 2, .zero = 3, .offload = disk_only}};
}

void on_ranks(const Layout& layout, const Workload& work,
              const std::function<void(RankTraining&)>& body) {
  SCOPED_TRACE(to_string(layout));
  const MeshShape shape = layout.mesh();
  const TensorSplit split{0, layout.tensor, false};
  run_ranks_as_threads(shape.world(), {.mesh = shape}, [&](World& world) {
    const Mesh mesh(world, shape, split.kv_replicas(work.config));
    RankTraining rank(mesh, work, layout);
    body(rank);
  });
}

// What a rank holds of one element of a weight.
void put(RankTraining& rank, int64_t element, float value) {
  for (const NamedTensor& piece : rank.engine.store().weights()) {
    if (piece.name != spoiled) continue;
    for_each_shared_run(whole(piece.shape), piece.box,
                        [&](int64_t global, int64_t local, int64_t count) {
                          if (global <= element && element < global + count)
                            rank.ops->upload(&value, piece.data.range(local + element - global, 1));
                        });
  }
  rank.engine.store().refresh_compute();
}

TEST(NothingFinite, IsNamedAlikeByAllRanks) {
  const TemporaryFolder folder;
  for (const DType compute : {DType::f32, DType::bf16})
    for (const Layout& layout : layouts(folder))
      on_ranks(layout, workload(compute), [&](RankTraining& rank) {
        constexpr int64_t element = 52 + 7;
        put(rank, element, std::nanf(""));
        {
          std::vector<NamedTensor> weights;
          if (rank.engine.store().counts()) weights = rank.engine.store().weights(Copies::counted);
          const TensorGroup group{"weights", weights};
          const auto found = find_non_finite(rank.engine, std::span(&group, 1));
          ASSERT_TRUE(found);
          EXPECT_EQ(describe(*found),
                    fmt::format("1 value of the weights is not finite, it is nan, element [1, 7] "
                                "of '{}'",
                                spoiled));
        }
        StepReport report;
        for (int64_t step = 1; step <= 2; ++step) {
          report = rank.step(step);
          EXPECT_TRUE(report.skipped);
          EXPECT_EQ(report.hopeless, step);
        }
        const auto tokens = static_cast<size_t>(rank.workload.shape.rows() * rank.micros);
        const std::vector<int32_t> ids = random_ids(tokens, rank.workload.config.vocabulary, 3);
        const std::string where = rank.trainer->diagnose(report, ids, ids);
        EXPECT_TRUE(
            where.starts_with(fmt::format("block layers.2, the weight '{}': 1 of ", spoiled)))
            << where;
        const std::string all =
            broadcast_text(*rank.mesh.world, where, 0, "what the first rank says");
        EXPECT_EQ(where, all);
      });
}

// Two steps with one between them that learns nothing, which must leave no trace.
TEST(NothingLearned, LeavesEveryStateAsItIs) {
  const TemporaryFolder folder;
  for (const Layout& layout : layouts(folder)) {
    std::map<std::string, std::vector<float>> plain, with;
    std::mutex mutex;
    for (const bool empty : {false, true})
      on_ranks(layout, workload(DType::f32), [&](RankTraining& rank) {
        rank.step(1);
        if (empty) {
          const auto tokens = static_cast<size_t>(rank.workload.shape.rows() * rank.micros);
          const std::vector<int32_t> ids(tokens, 1), none(tokens, -1);
          const StepReport report = rank.trainer->step(2, 1e-3, ids, none);
          EXPECT_EQ(report.tokens, 0);
          EXPECT_TRUE(std::isnan(report.loss));
        }
        rank.step(3);
        for (size_t b = 0; b < rank.engine.step_plan().traits.size(); ++b)
          rank.engine.store().wait_parameters(b);
        const std::lock_guard lock(mutex);
        const ParamStore& store = rank.engine.store();
        if (!store.counts()) return;
        auto& out = empty ? with : plain;
        collect(store.weights(Copies::counted), *rank.ops, out);
      });
    EXPECT_FALSE(plain.empty());
    EXPECT_EQ(with, plain) << to_string(layout);
  }
}

}  // namespace
}  // namespace rankine::test

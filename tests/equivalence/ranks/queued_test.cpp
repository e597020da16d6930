#include <gtest/gtest.h>

#include "support/parallel_training.h"
#include "support/temporary_folder.h"

// A device whose work comes later gives the processor's bits: nothing rests on a call having done
// its work when it returns.
namespace rankine::test {
namespace {

struct QueuedCase {
  std::string name;
  size_t model = 0;  // of tiny_models()
  DType compute = DType::f32;
  Layout layout = {};
};

void PrintTo(const QueuedCase& c, std::ostream* out) {
  *out << c.name;
}

std::vector<QueuedCase> cases() {
  using enum Offload;
  using enum ScheduleKind;
  const Recompute full = Recompute::full;
  return {
      {"one_rank", 0},
      {"one_rank_bf16", 2, DType::bf16},
      {"one_rank_f16", 0, DType::f16},
      {"strict", 0, DType::f32, {.data = 2, .strict = true}},
      {"stage0", 2, DType::bf16, {.data = 2}},
      {"stage1", 0, DType::f32, {.data = 2, .zero = 1}},
      {"stage2", 2, DType::bf16, {.data = 2, .zero = 2}},
      {"stage3", 2, DType::f32, {.data = 2, .zero = 3}},
      {"tensor", 2, DType::f32, {.tensor = 2}},
      {"sequence", 2, DType::bf16, {.tensor = 2, .sequence = true}},
      {"sequence_and_data", 2, DType::f32, {.data = 2, .zero = 1, .tensor = 2, .sequence = true}},
      {"pipeline", 0, DType::f32, {.pipeline = 2}},
      {"zero_bubble", 2, DType::f32, {.pipeline = 2, .schedule = zero_bubble}},
      {"mesh", 2, DType::f32, {.data = 2, .zero = 3, .tensor = 2, .pipeline = 2}},
      {"mesh_tied", 3, DType::bf16, {.data = 2, .zero = 1, .tensor = 2, .pipeline = 2}},
      {"recompute", 2, DType::f32, {.data = 2, .recompute = full}},
      {"parameters_on_host",
       2,
       DType::bf16,
       {.data = 2, .zero = 3, .offload = {.parameters = host}}},
      {"f32_parameters_on_host", 2, DType::f32, {.offload = {.parameters = host}}},
      {"optimizer_on_host", 0, DType::bf16, {.data = 2, .offload = {.optimizer = host}}},
      {"optimizer_on_host_strict",
       2,
       DType::f32,
       {.data = 2, .zero = 2, .strict = true, .offload = {.optimizer = host}}},
      {"tied_optimizer_on_host",
       0,
       DType::f32,
       {.data = 2, .zero = 1, .pipeline = 2, .offload = {.optimizer = host}}},
      {"activations_on_host", 2, DType::f32, {.offload = {.activations = host}}},
      {"delayed",
       2,
       DType::f32,
       {.data = 2, .zero = 1, .offload = {.optimizer = host, .delayed_update = 2}}},
      {"all_on_host",
       2,
       DType::bf16,
       {.data = 2,
        .zero = 3,
        .recompute = full,
        .offload = {.optimizer = host, .parameters = host, .activations = host}}},
      {"parameters_on_disk",
       2,
       DType::f32,
       {.data = 2, .zero = 3, .offload = {.parameters = disk}}},
      {"whole_parameters_on_disk",
       2,
       DType::bf16,
       {.data = 2, .zero = 1, .offload = {.parameters = disk}}},
      {"optimizer_on_disk", 0, DType::f32, {.offload = {.optimizer = disk}}},
      {"all_on_disk_delayed",
       2,
       DType::f32,
       {.data = 2,
        .zero = 2,
        .offload = {
            .optimizer = disk, .parameters = disk, .activations = disk, .delayed_update = 2}}}};
}

class QueuedDeviceTraining : public ::testing::TestWithParam<QueuedCase> {};

Workload work_of(const QueuedCase& c) {
  ModelConfig config = tiny_models()[c.model].config;
  config.heads = 4;
  config.kv_heads = config.kv_heads == 3 ? 4 : config.kv_heads;
  return {.config = config,
          .shape = {2, 8},
          .micros = 4,
          .compute = c.compute,
          .optimizer = {.epsilon = 1e-3, .clip_grad = 0.5},
          .validates = true};
}

Outcome outcome_on(bool queued, const QueuedCase& c) {
  const TemporaryFolder folder;
  Layout layout = c.layout;
  if (layout.offload.on_disk()) layout.offload.folder = folder.path();
  bool& device = on_queued_device();
  const bool before = std::exchange(device, queued);
  Outcome out = train_as_threads(work_of(c), layout);
  device = before;
  return out;
}

TEST_P(QueuedDeviceTraining, HasTheProcessorsBits) {
  const Outcome direct = outcome_on(false, GetParam()), queued = outcome_on(true, GetParam());
  EXPECT_EQ(queued.losses, direct.losses);
  EXPECT_EQ(queued.norms, direct.norms);
  EXPECT_EQ(queued.weights, direct.weights);
  EXPECT_EQ(queued.loss_scale, direct.loss_scale);
  EXPECT_GT(direct.losses.size(), 3);
}

// The reports of steps that begin while the one before is under way.
std::vector<StepReport> reports_on(bool queued, const QueuedCase& c) {
  bool& device = on_queued_device();
  const bool before = std::exchange(device, queued);
  std::vector<StepReport> reports;
  std::mutex mutex;
  const MeshShape shape = c.layout.mesh();
  run_ranks_as_threads(shape.world(), {.mesh = shape}, [&](World& world) {
    const Mesh mesh(world, shape);
    RankTraining rank(mesh, work_of(c), c.layout);
    std::vector<StepReport> mine;
    for (int64_t step = 1; step <= 4; ++step) {
      rank.start(step);
      while (const auto report = rank.trainer->finished(step == 4)) mine.push_back(*report);
      EXPECT_EQ(mine.size(), static_cast<size_t>(queued && step < 4 ? step - 1 : step));
    }
    const std::lock_guard lock(mutex);
    if (mesh.rank == 0) reports = mine;
  });
  device = before;
  return reports;
}

TEST(QueuedDevice, AStepsReportIsReadWhileTheNextOneRuns) {
  for (const QueuedCase& c :
       {QueuedCase{"one", 0, DType::f16}, {"two", 2, DType::f32, {.data = 2, .zero = 3}}}) {
    SCOPED_TRACE(c.name);
    const std::vector<StepReport> direct = reports_on(false, c), queued = reports_on(true, c);
    ASSERT_EQ(direct.size(), 4);
    ASSERT_EQ(queued.size(), 4);
    for (size_t s = 0; s < direct.size(); ++s) {
      EXPECT_EQ(queued[s].step, direct[s].step);
      EXPECT_EQ(queued[s].loss, direct[s].loss);
      EXPECT_EQ(queued[s].skipped, direct[s].skipped);
      EXPECT_EQ(queued[s].loss_scale, direct[s].loss_scale);
      EXPECT_TRUE(direct[s].skipped || queued[s].grad_norm == direct[s].grad_norm);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, QueuedDeviceTraining, ::testing::ValuesIn(cases()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace rankine::test

#include "checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include "runtime/train_loop.h"
#include "support/mesh_cases.h"
#include "support/temporary_folder.h"

// A run that one mesh begins, any other continues; and what is exported does not tell which it was.
namespace rankine::test {
namespace {

constexpr int64_t saved_at = 2, last_step = 4;

Workload workload_named(const char* model) {
  Workload work = workload_of({.model = model, .layout = {}});
  // A config.json of GPT-2 cannot say another size of heads.
  work.config.head_dim = work.config.hidden / work.config.heads;
  work.steps = saved_at;
  return work;
}

void save(RankTraining& rank, const std::filesystem::path& folder, int64_t step) {
  ParamStore& store = rank.engine.store();
  RunState state;
  state.step = step;
  state.trainer = rank.trainer->state();
  state.model = rank.workload.config;
  state.tokenizer = "bytes";
  const std::vector<NamedTensor> weights = store.weights(Copies::counted),
                                 momentum = store.momentum(Copies::counted),
                                 variance = store.variance(Copies::counted);
  std::vector<TensorGroup> groups;
  if (store.counts())
    groups = {{"weights", weights}, {"momentum", momentum}, {"variance", variance}};
  save_checkpoint_together(folder, run_state_text(state), groups, *rank.ops, *rank.mesh.world);
}

// Steps (first, last] on a mesh, from the checkpoint in `from` unless empty and into one in `to`.
Outcome train_between(const Workload& work, const Layout& layout, int64_t first, int64_t last,
                      const std::filesystem::path& from, const std::filesystem::path& to) {
  Outcome joined;
  std::mutex mutex;
  const MeshShape shape = layout.mesh();
  const TensorSplit split{0, layout.tensor, false};
  run_ranks_as_threads(shape.world(), {.mesh = shape}, [&](World& world) {
    const Mesh mesh(world, shape, split.kv_replicas(work.config));
    RankTraining rank(mesh, work, layout);
    if (!from.empty()) {
      const RunState state = resume(from, rank.engine, *rank.trainer);
      EXPECT_EQ(state.step, first);
    }
    Outcome mine;
    for (int64_t step = first + 1; step <= last; ++step) {
      const StepReport report = rank.step(step);
      mine.losses.push_back(report.loss);
      mine.norms.push_back(report.grad_norm);
    }
    if (!to.empty()) save(rank, to, last);
    for (size_t b = 0; b < rank.engine.step_plan().traits.size(); ++b)
      rank.engine.store().wait_parameters(b);
    const std::lock_guard lock(mutex);
    if (mesh.rank == 0) {
      joined.losses = mine.losses;
      joined.norms = mine.norms;
    }
    if (rank.engine.store().counts())
      collect(rank.engine.store().weights(Copies::counted), *rank.ops, joined.weights);
  });
  return joined;
}

struct Move {
  const char* name;
  Layout from, to;
};

using enum ScheduleKind;

const std::vector<Move>& moves() {
  static const std::vector<Move> all{
      {"tensor_to_pipeline", {.tensor = 2}, {.pipeline = 2}},
      {"pipeline_to_tensor", {.pipeline = 3}, {.tensor = 4}},
      {"sharded_to_sequence", {.data = 2, .zero = 3}, {.tensor = 2, .sequence = true}},
      {"sequence_to_sharded", {.tensor = 4, .sequence = true}, {.data = 4, .zero = 3}},
      {"v_to_one", {.pipeline = 2, .schedule = zb_v}, {}},
      {"one_to_v", {}, {.data = 2, .zero = 2, .pipeline = 2, .schedule = zb_v}},
      {"all_axes",
       {.data = 2, .zero = 1, .tensor = 2, .pipeline = 2},
       {.data = 2, .zero = 3, .pipeline = 3, .schedule = interleaved, .virtual_stages = 2}},
      {"to_all_axes",
       {.data = 4, .zero = 2, .pipeline = 2, .schedule = zero_bubble},
       {.data = 2, .zero = 3, .tensor = 2, .pipeline = 2, .sequence = true}}};
  return all;
}

struct Continued {
  const char* model;
  Move move;
};

void PrintTo(const Continued& c, std::ostream* out) {
  *out << c.model << ", " << to_string(c.move.from) << " to " << to_string(c.move.to);
}

class Continuation : public ::testing::TestWithParam<Continued> {};

TEST_P(Continuation, TrainsAsIfNothingHadChanged) {
  const auto& [model, move] = GetParam();
  const Workload work = workload_named(model);
  const TemporaryFolder folder;
  const Outcome reference = train_between(work, {}, 0, last_step, {}, {});
  train_between(work, move.from, 0, saved_at, {}, folder / "step");
  const Outcome out = train_between(work, move.to, saved_at, last_step, folder / "step", {});
  Outcome end = reference;
  end.losses.erase(end.losses.begin(), end.losses.begin() + saved_at);
  end.norms.erase(end.norms.begin(), end.norms.begin() + saved_at);
  expect_close(out, end, 5e-5);
}

std::vector<Continued> continued() {
  std::vector<Continued> out;
  for (const Move& move : moves())
    for (const char* model : {"gpt2", "llama"}) out.push_back({model, move});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Meshes, Continuation, ::testing::ValuesIn(continued()),
                         [](const ::testing::TestParamInfo<Continued>& one) {
                           return fmt::format("{}_{}", one.param.model, one.param.move.name);
                         });

TEST(StrictContinuation, HasTheSameBitsOnAnyMeshWithoutTensorRanks) {
  const Layout layouts[] = {
      {.strict = true},
      {.data = 2, .zero = 3, .strict = true, .pipeline = 2},
      {.data = 4, .zero = 2, .strict = true},
      {.strict = true, .pipeline = 3, .schedule = gpipe},
      {.data = 2, .zero = 1, .strict = true, .pipeline = 2, .schedule = zb_v},
      {.strict = true, .pipeline = 2, .schedule = interleaved, .virtual_stages = 2}};
  for (const char* model : {"gpt2", "llama"}) {
    const Workload work = workload_named(model);
    const Outcome whole = train_between(work, layouts[0], 0, last_step, {}, {});
    const size_t count = std::size(layouts);
    for (size_t i = 0; i < count; ++i) {
      const Layout &from = layouts[i], &to = layouts[(i + 1) % count];
      SCOPED_TRACE(fmt::format("{}, {} to {}", model, to_string(from), to_string(to)));
      const TemporaryFolder folder;
      const Outcome first = train_between(work, from, 0, saved_at, {}, folder / "step");
      const Outcome rest = train_between(work, to, saved_at, last_step, folder / "step", {});
      std::vector<double> losses = first.losses, norms = first.norms;
      losses.insert(losses.end(), rest.losses.begin(), rest.losses.end());
      norms.insert(norms.end(), rest.norms.begin(), rest.norms.end());
      EXPECT_EQ(losses, whole.losses);
      EXPECT_EQ(norms, whole.norms);
      EXPECT_EQ(rest.weights, whole.weights);
    }
  }
}

}  // namespace
}  // namespace rankine::test

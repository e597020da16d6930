#include "models.h"
#include "support/parallel_training.h"

// The recorded losses, gradients and AdamW runs again on 8 ranks, data 2 x tensor 2 x pipeline 2,
// within the tolerances of one rank.
namespace rankine::test {
namespace {

class GoldenMesh : public GoldenModelCase {
 protected:
  static constexpr int data = 2, tensor = 2, pipeline = 2;

  // False (and the test skipped, with the reason) when the model cannot be cut so.
  bool open_for_mesh() {
    if (!open()) return false;
    if (batches.batch % data != 0) {
      skip(fmt::format("{} sequences cannot be shared by {} data ranks", batches.batch, data));
      return false;
    }
    try {
      check(config, {0, tensor, true}, batches.tokens);
    } catch (const Error& e) {
      skip(e.what());
      return false;
    }
    return true;
  }

  Workload workload(double clip) const {
    return {.config = config,
            .shape = {1, batches.tokens},
            .micros = static_cast<int>(batches.batch),
            .optimizer = optimizer(clip)};
  }

  // One rank's sequences of a step, as train_rank hands them out.
  std::vector<int32_t> share(const std::vector<int32_t>& whole, int rank) const {
    std::vector<int32_t> out;
    for (int64_t b = rank; b < batches.batch; b += data)
      out.insert(out.end(), whole.begin() + b * batches.tokens,
                 whole.begin() + (b + 1) * batches.tokens);
    return out;
  }

  StepReport step(RankTraining& rank, int64_t number, double lr) const {
    const auto i = static_cast<size_t>(number - 1);
    const int at = rank.mesh.data->rank();
    return rank.trainer->step(number, lr, share(batches.ids[i], at), share(batches.targets[i], at));
  }

  // The mean loss on the first batch.
  double evaluated(RankTraining& rank) const {
    const int at = rank.mesh.data->rank();
    const std::vector<int32_t> ids = share(batches.ids[0], at);
    const std::vector<int32_t> targets = share(batches.targets[0], at);
    const auto tokens = static_cast<size_t>(batches.tokens);
    double sum = 0;
    for (size_t first = 0; first < ids.size(); first += tokens)
      sum += rank.engine.executor().evaluate(std::span(ids).subspan(first, tokens),
                                             std::span(targets).subspan(first, tokens),
                                             {1, batches.tokens});
    if (rank.mesh.at(Axis::tensor) != 0) sum = 0;
    rank.mesh.world->all_reduce({&sum, DType::f64, Shape{1}}, Reduction::sum, "loss").wait();
    return sum / static_cast<double>(shape().rows());
  }

  // Calls `work` on every rank with the model loaded; returns the whole tensors of which each rank
  // lists its pieces.
  template <class Work, class Pieces>
  WholeTensors on_mesh(const Layout& layout, double clip, const Work& work, const Pieces& pieces) {
    WholeTensors whole;
    std::mutex mutex;
    run_ranks_as_threads(layout.mesh().world(), {.mesh = layout.mesh()}, [&](World& world) {
      const TensorSplit split{0, layout.tensor, false};
      const Mesh mesh(world, layout.mesh(), split.kv_replicas(config));
      RankTraining rank(mesh, workload(clip), layout);
      load(rank.engine);
      work(rank);
      for (size_t b = 0; b < rank.engine.step_plan().traits.size(); ++b)
        rank.engine.store().wait_parameters(b);
      const std::lock_guard lock(mutex);
      if (rank.engine.store().counts()) collect(pieces(rank.engine.store()), *rank.ops, whole);
    });
    return whole;
  }

  static std::vector<Layout> layouts() {
    using enum ScheduleKind;
    const Layout mesh{.data = data, .tensor = tensor, .pipeline = pipeline};
    Layout plain = mesh, sequence = mesh, v = mesh;
    sequence.zero = 3;
    sequence.sequence = true;
    sequence.schedule = zero_bubble;
    v.zero = 2;
    v.schedule = zb_v;
    return {plain, sequence, v};
  }
};

TEST_P(GoldenMesh, LossesAndGradients) {
  if (!open_for_mesh()) return;
  for (const Layout& layout : layouts()) {
    SCOPED_TRACE(to_string(layout));
    const WholeTensors gradients = on_mesh(
        layout, 0,
        [&](RankTraining& rank) {
          const StepReport report = step(rank, 1, 0.0);
          const double norm = golden["grad_norm"];
          EXPECT_NEAR(report.loss, golden["loss"].get<double>(), 1e-5);
          EXPECT_NEAR(report.grad_norm, norm, 1e-4 * norm);
        },
        [](const ParamStore& store) { return store.gradients(Copies::counted); });
    check_gradients(gradients);
  }
}

TEST_P(GoldenMesh, AdamwRun) {
  if (!open_for_mesh()) return;
  const Json& expected = golden["adamw"];
  for (const Layout& layout : layouts()) {
    SCOPED_TRACE(to_string(layout));
    const WholeTensors weights = on_mesh(
        layout, expected["clip_norm"],
        [&](RankTraining& rank) {
          for (int64_t s = 0; s < batches.steps; ++s) {
            const auto i = static_cast<size_t>(s);
            const StepReport report = step(rank, s + 1, expected["lrs"][i].get<double>());
            const double norm = expected["grad_norms_before_clip"][i];
            EXPECT_NEAR(report.loss, expected["losses"][i].get<double>(), 1e-4) << "step " << s;
            EXPECT_NEAR(report.grad_norm, norm, 1e-4 * norm) << "step " << s;
          }
          EXPECT_NEAR(evaluated(rank), expected["loss_on_batch0_after"].get<double>(), 1e-4);
        },
        [](const ParamStore& store) { return store.weights(Copies::counted); });
    if (expected.contains("final_params")) check_parameters(weights, expected["final_params"]);
  }
}

// Both kinds of heads are among the models that can be cut.
TEST(GoldenMeshModels, SomeAreTiedAndSomeAreNot) {
  std::map<bool, int> models;
  for (const std::string& name : case_names("models")) {
    if (name.empty()) GTEST_SKIP() << "no golden models";
    try {
      const ModelConfig config = read_hf_config(golden_folder() / "models" / name / "config.json");
      check(config, {0, 2, false}, 2);
      ++models[config.tied];
    } catch (const Error&) {
      continue;  // a mixture of experts
    }
  }
  EXPECT_GT(models[true], 0);
  EXPECT_GT(models[false], 0);
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenMesh, ::testing::ValuesIn(case_names("models")), test_name);

}  // namespace
}  // namespace rankine::test

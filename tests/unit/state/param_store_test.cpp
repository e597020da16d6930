#include "state/param_store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "comm/world.h"
#include "model/model.h"
#include "support/tiny_models.h"

namespace rankine::test {
namespace {

// A store over its own arena, with its tensors read as plain floats.
struct Store {
  Store(const ModelConfig& config, DType compute, Purpose purpose)
      : ops(make_cpu_ops(1)),
        model(config),
        alone(make_self_world()->group({0})),
        store(model.describe(*ops, {1, 4}, compute), {.compute = compute, .purpose = purpose},
              StateRanks{*alone}) {
    store.add_to(plan);
    arena = std::make_unique<Arena>(plan, Tier::device);
    store.bind(*arena, *arena, *ops);
  }
  static std::span<float> floats(const Tensor& t) {
    return {static_cast<float*>(t.data), static_cast<size_t>(t.elements())};
  }

  std::unique_ptr<Ops> ops;
  Model model;
  std::unique_ptr<Communicator> alone;
  ParamStore store;
  MemoryPlan plan;
  std::unique_ptr<Arena> arena;
};

TEST(ParamStore, BytesPerParameterAreTheFormulas) {
  for (const TinyModel& tiny : tiny_models())
    for (const auto& [compute, training_bytes] : {std::pair{DType::f32, 16}, {DType::bf16, 18}}) {
      Store training(tiny.config, compute, Purpose::training);
      const uint64_t bytes = training.plan.peak_bytes(Tier::device);
      EXPECT_EQ(bytes, static_cast<uint64_t>(training.store.elements() * training_bytes));
      EXPECT_GE(training.store.elements(), parameter_count(tiny.config));
    }
}

TEST(ParamStore, InitialWeightsAreAFunctionOfSeedAndName) {
  const ModelConfig config = tiny_models()[2].config;
  Store a(config, DType::f32, Purpose::inference), b(config, DType::bf16, Purpose::training);
  a.store.initialise(5);
  b.store.initialise(5);
  std::map<std::string, float> first;
  const auto weights = a.store.weights(), others = b.store.weights();
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto x = Store::floats(weights[i].data), y = Store::floats(others[i].data);
    EXPECT_TRUE(std::equal(x.begin(), x.end(), y.begin(), y.end())) << weights[i].name;
    if (weights[i].shape.rank() == 2) first[weights[i].name] = x[0];
  }
  EXPECT_NE(first.at("layers.0.mlp.up.weight"), first.at("layers.1.mlp.up.weight"));
  a.store.initialise(6);
  EXPECT_NE(Store::floats(weights[0].data)[0], Store::floats(others[0].data)[0]);
}

TEST(ParamStore, ResidualProductsStartSmaller) {
  const ModelConfig config = tiny_models()[2].config;
  Store s(config, DType::f32, Purpose::inference);
  s.store.initialise(5);
  for (const NamedTensor& t : s.store.weights()) {
    if (t.shape.rank() != 2) continue;
    double squares = 0;
    for (const float x : Store::floats(t.data)) squares += static_cast<double>(x) * x;
    const bool residual = t.name.ends_with("out.weight") || t.name.ends_with("down.weight");
    const double std = config.initializer_range /
                       (residual ? std::sqrt(2.0 * static_cast<double>(config.layers)) : 1.0);
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(t.data.elements())), std, 0.15 * std)
        << t.name;
  }
}

TEST(ParamStore, UpdatesDecayMatricesOnlyAndLeavePaddingAtZero) {
  for (const TinyModel& tiny : tiny_models()) {
    Store s(tiny.config, DType::bf16, Purpose::training);
    s.store.initialise(5);
    const std::vector<NamedTensor> weights = s.store.weights();
    std::vector<std::vector<float>> before;
    for (const NamedTensor& t : weights) {
      const auto x = Store::floats(t.data);
      before.emplace_back(x.begin(), x.end());
    }
    // Zero gradients: only the decay moves anything.
    s.store.update({.lr = 0.5f, .weight_decay = 0.2f});
    for (size_t i = 0; i < weights.size(); ++i) {
      const auto x = Store::floats(weights[i].data);
      const float kept = weights[i].shape.rank() == 2 ? 1.0f - 0.5f * 0.2f : 1.0f;
      for (size_t j = 0; j < x.size(); ++j)
        ASSERT_FLOAT_EQ(x[j], before[i][j] * kept) << weights[i].name;
    }
    const Tensor table = s.store.params(0)[0];
    const auto* bits = static_cast<const Bf16*>(table.data);
    for (int64_t j = tiny.config.vocabulary * tiny.config.hidden; j < table.elements(); ++j)
      ASSERT_EQ(bits[j].bits, 0);
  }
}

TEST(ParamStore, TheNormCountsATiedWeightOnce) {
  for (const TinyModel& tiny : tiny_models()) {
    Store s(tiny.config, DType::f32, Purpose::training);
    double expected = 0;
    float value = 0.5f;
    for (const NamedTensor& g : s.store.gradients())
      for (float& x : Store::floats(g.data)) {
        x = value;
        value = value > 1 ? 0.25f : value + 0.125f;
        expected += static_cast<double>(x) * x;
      }
    ExactSum total;
    s.store.sum_squared_gradients({total.parts().data(), DType::i64, Shape{ExactSum::size}});
    EXPECT_NEAR(total.value(), expected, 1e-9 * expected) << tiny.name;
    if (tiny.config.tied) {
      EXPECT_EQ(s.store.grads(s.model.blocks.size() - 1).back().data, s.store.grads(0)[0].data);
    }
  }
}

}  // namespace
}  // namespace rankine::test

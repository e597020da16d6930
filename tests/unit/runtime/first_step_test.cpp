#include <gtest/gtest.h>

#include <cmath>

#include "support/tiny_models.h"
#include "support/training.h"

// The first step of AdamW from zero moments, against its formula: what weight decay touches, what
// happens to tokens that do not occur, and that a head which is not tied stays by itself.
namespace rankine::test {
namespace {

constexpr MicroShape shape{2, 16};
constexpr double lr = 1e-2, decay = 0.5, epsilon = 1e-8;

class FirstStep : public ::testing::TestWithParam<TinyModel> {
 protected:
  FirstStep() : config(GetParam().config) { config.dropout = 0; }

  Training::Setup setup() const {
    return {.shape = shape,
            .optimizer = {.epsilon = epsilon, .weight_decay = decay, .clip_grad = 0},
            .threads = 1};
  }
  // Tokens below 40 alone, so that others do not occur.
  std::vector<int32_t> ids(uint64_t seed) const {
    return random_ids(static_cast<size_t>(shape.rows()), 40, seed);
  }
  static std::vector<std::vector<float>> values(Training& training, bool gradients) {
    std::vector<std::vector<float>> out;
    for (const NamedTensor& t :
         gradients ? training.engine.store().gradients() : training.engine.store().weights())
      out.push_back(host_copy(*training.ops, t.data));
    return out;
  }

  ModelConfig config;
};

TEST_P(FirstStep, DecaysMatricesAndNothingElse) {
  Training still(config, setup()), moved(config, setup());
  still.trainer->step(1, 0.0, ids(1), ids(2));
  const auto before = values(still, false), gradients = values(still, true);
  moved.trainer->step(1, lr, ids(1), ids(2));
  const auto after = values(moved, false);
  const std::vector<NamedTensor> weights = moved.engine.store().weights();
  ASSERT_EQ(before.size(), gradients.size());
  for (size_t p = 0; p < weights.size(); ++p) {
    const bool is_matrix = weights[p].shape.dims().size() == 2;
    for (size_t i = 0; i < before[p].size(); ++i) {
      const double w = static_cast<double>(before[p][i]), g = static_cast<double>(gradients[p][i]);
      const double expected =
          w * (1 - (is_matrix ? lr * decay : 0)) - lr * g / (std::abs(g) + epsilon);
      // A gradient near epsilon is rounded before it is divided.
      const double slack = std::abs(g) < 1e-5 ? lr : 2e-6;
      ASSERT_NEAR(static_cast<double>(after[p][i]), expected, slack) << weights[p].name << " " << i;
    }
  }
}

TEST_P(FirstStep, TokensThatDoNotOccurOnlyDecay) {
  config.tied = false;  // a head's gradient reaches every row
  Training training(config, setup());
  const auto before = values(training, false);
  training.trainer->step(1, lr, ids(1), ids(2));
  const auto after = values(training, false);
  const auto hidden = static_cast<size_t>(config.hidden);
  ASSERT_EQ(training.engine.store().weights()[0].name, "embedding.tokens.weight");
  for (size_t i = 40 * hidden; i < before[0].size(); ++i)
    ASSERT_NEAR(after[0][i], before[0][i] * static_cast<float>(1 - lr * decay), 1e-7) << i;
}

TEST_P(FirstStep, AHeadThatIsNotTiedStaysByItself) {
  config.tied = false;
  Training training(config, setup());
  const std::vector<NamedTensor> weights = training.engine.store().weights();
  const auto named = [&](const std::string& name) {
    for (size_t i = 0; i < weights.size(); ++i)
      if (weights[i].name == name) return i;
    return weights.size();
  };
  const size_t tokens = named("embedding.tokens.weight"), head = named("head.weight");
  ASSERT_LT(std::max(tokens, head), weights.size());
  const std::vector<float> equal = host_copy(*training.ops, weights[tokens].data);
  training.ops->upload(equal.data(), weights[head].data);
  training.engine.store().refresh_compute();
  training.trainer->step(1, lr, ids(1), ids(2));
  EXPECT_NE(host_copy(*training.ops, weights[tokens].data),
            host_copy(*training.ops, weights[head].data));
}

INSTANTIATE_TEST_SUITE_P(Models, FirstStep, ::testing::ValuesIn(tiny_models()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace rankine::test

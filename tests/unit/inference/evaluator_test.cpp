#include "inference/evaluator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/tiny_models.h"
#include "support/training.h"

namespace rankine::test {
namespace {

class EvaluatorTest : public ::testing::TestWithParam<TinyModel> {
 protected:
  static constexpr int64_t most = 32;
  void SetUp() override {
    for (const size_t length : {1, 2, 0, 40, 9, 33, 17, 71})
      documents.push_back(random_ids(length, GetParam().config.vocabulary, length + 1));
  }

  std::vector<Evaluator::Document> evaluate(const Evaluator::Setup& setup) const {
    const auto ops = make_cpu_ops(2);
    Engine engine(*ops, GetParam().config, evaluation_setup(DType::f32, setup));
    engine.allocate();
    engine.store().initialise(7);
    Evaluator evaluator(engine, setup);
    for (size_t i = 0; i < documents.size(); ++i) EXPECT_EQ(evaluator.add(documents[i]), i);
    return evaluator.finish();
  }

  // The sum of -log p(id | those before it in its window), from logits.
  double by_hand(const std::vector<int32_t>& ids, int64_t context, int64_t stride) const {
    const auto ops = make_cpu_ops(2);
    Engine engine(*ops, GetParam().config, evaluation_setup(DType::f32, {1, most, most}));
    engine.allocate();
    engine.store().initialise(7);
    const auto targets = static_cast<int64_t>(ids.size()) - 1;
    double sum = 0;
    for (int64_t t = 0; t < targets; ++t) {
      // The first window that holds the target.
      const int64_t begin = t < context ? 0 : (t - context + stride) / stride * stride;
      const int64_t length = t + 1 - begin;
      const Tensor row = engine.executor().logits(
          std::span(ids).subspan(static_cast<size_t>(begin), static_cast<size_t>(length)),
          {1, length}, {}, 1);
      const std::vector<float> logits = host_copy(*ops, row);
      double total = 0;
      for (int64_t v = 0; v < GetParam().config.vocabulary; ++v)
        total += std::exp(static_cast<double>(logits[static_cast<size_t>(v)]));
      const auto target = static_cast<size_t>(ids[static_cast<size_t>(t) + 1]);
      sum += std::log(total) - static_cast<double>(logits[target]);
    }
    return sum;
  }

  std::vector<std::vector<int32_t>> documents;
};

TEST_P(EvaluatorTest, EqualsTheFormula) {
  for (const auto& [context, stride] : {std::pair<int64_t, int64_t>{16, 16}, {16, 5}, {32, 32}}) {
    const auto got = evaluate({3, context, stride});
    ASSERT_EQ(got.size(), documents.size());
    for (size_t i = 0; i < documents.size(); ++i) {
      SCOPED_TRACE(fmt::format("document {} context {} stride {}", i, context, stride));
      EXPECT_EQ(got[i].tokens,
                documents[i].empty() ? 0 : static_cast<int64_t>(documents[i].size()) - 1);
      EXPECT_NEAR(got[i].loss, by_hand(documents[i], context, stride),
                  1e-4 + 1e-5 * static_cast<double>(got[i].tokens));
    }
  }
}

TEST_P(EvaluatorTest, DoesNotDependOnWhatIsComputedTogether) {
  const auto alone = evaluate({1, 16, 16}), again = evaluate({1, 16, 16});
  EXPECT_EQ(alone, again);
  for (const int64_t rows : {2, 5, 64}) {
    const auto together = evaluate({rows, 16, 16});
    for (size_t i = 0; i < documents.size(); ++i) {
      EXPECT_EQ(together[i].tokens, alone[i].tokens);
      EXPECT_NEAR(together[i].loss, alone[i].loss, 1e-4) << rows << " rows, document " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EvaluatorTest, ::testing::ValuesIn(tiny_models()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace rankine::test

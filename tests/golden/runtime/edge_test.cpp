#include "cases.h"

// Odd but legal checkpoint layouts, and a really trained model.
namespace rankine::test {
namespace {

std::vector<float> last_logits(Engine& engine, std::span<const int32_t> ids, int64_t rows) {
  const MicroShape shape{1, static_cast<int64_t>(ids.size())};
  const Tensor all = engine.executor().logits(ids, shape, {}, rows);
  return host_copy(engine.executor().ops(), all.as(Shape{all.elements()}));
}

class GoldenEdge : public GoldenCase {};

TEST_P(GoldenEdge, Logits) {
  if (!open_case("edge")) return;
  const std::vector<int32_t> ids = golden["input_ids"];
  const auto tokens = static_cast<int64_t>(ids.size());
  const auto ops = make_test_ops(2);
  Engine engine(*ops, config,
                {.shape = {1, tokens},
                 .compute = DType::f32,
                 .purpose = Purpose::inference,
                 .positions = tokens});
  engine.allocate();
  load(engine);
  const std::vector<float> all = last_logits(engine, ids, tokens);
  const size_t width = all.size() / ids.size();
  const std::vector<float> first = golden["logits_first"], last = golden["logits_last"];
  EXPECT_LE(largest_difference(std::span(all).first(first.size()), first), 1e-4);
  EXPECT_LE(largest_difference(std::span(all).subspan(all.size() - width, last.size()), last),
            1e-4);
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenEdge, ::testing::ValuesIn(case_names("edge")), test_name);

class GoldenTrained : public GoldenCase {};

TEST_P(GoldenTrained, GreedyTextFromTheFirstToken) {
  if (!open_case("trained")) return;
  const std::vector<int32_t> expected = golden["greedy_ids_from_bos"];
  const auto ops = make_test_ops(2);
  Engine engine(*ops, config, generation_setup(DType::f32, static_cast<int64_t>(expected.size())));
  engine.allocate();
  load(engine);
  std::vector<int32_t> ids{expected[0]};
  Generator(engine, {.temperature = 0}, {})
      .run_on({ids, static_cast<int64_t>(expected.size()) - 1}, [&](size_t, int32_t id) {
        ids.push_back(id);
        return true;
      });
  EXPECT_EQ(ids, expected);
}

TEST_P(GoldenTrained, HeldOutLoss) {
  if (!open_case("trained")) return;
  const std::vector<int32_t> ids = golden["heldout_ids"];
  const MicroShape shape{1, static_cast<int64_t>(ids.size()) - 1};
  const auto ops = make_test_ops(2);
  Engine engine(*ops, config,
                {.shape = shape,
                 .compute = DType::f32,
                 .purpose = Purpose::inference,
                 .positions = shape.tokens});
  engine.allocate();
  load(engine);
  const auto count = static_cast<size_t>(shape.tokens);
  const double loss =
      engine.executor().evaluate(std::span(ids).first(count), std::span(ids).subspan(1), shape) /
      static_cast<double>(count);
  EXPECT_NEAR(loss, golden["heldout_loss"].get<double>(), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenTrained, ::testing::ValuesIn(case_names("trained")),
                         test_name);

}  // namespace
}  // namespace rankine::test

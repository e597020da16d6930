#include "inference/generator.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/errors.h"
#include "support/tiny_models.h"
#include "support/training.h"

namespace rankine::test {
namespace {

// Texts of several lengths continued by one tiny model.
class GeneratorTest : public ::testing::TestWithParam<TinyModel> {
 protected:
  static constexpr int64_t positions = 32;
  void SetUp() override {
    for (const int64_t length : {3, 9, 1, 17, 6})
      requests.push_back({random_ids(static_cast<size_t>(length), GetParam().config.vocabulary,
                                     static_cast<uint64_t>(length)),
                          12 + length % 5, 0});
  }

  struct Result {
    std::vector<std::vector<int32_t>> texts;
    std::vector<TextEnd> ends;
    bool operator==(const Result&) const = default;
  };
  Result run(int64_t sequences, const std::vector<int32_t>& end_tokens = {},
             DType dtype = DType::f32, size_t stop_after = 1000) const {
    const auto ops = make_cpu_ops(2);
    Engine engine(*ops, GetParam().config, generation_setup(dtype, positions, sequences));
    engine.allocate();
    engine.store().initialise(7);
    Generator generator(engine, {.temperature = 1, .top_p = 0.9, .seed = 3}, end_tokens);
    generator.forbid({5});
    Result result{std::vector<std::vector<int32_t>>(requests.size()),
                  std::vector<TextEnd>(requests.size(), TextEnd::stopped)};
    generator.run(
        requests,
        [&](size_t request, int32_t id) {
          result.texts[request].push_back(id);
          return result.texts[request].size() < stop_after;
        },
        [&](size_t request, TextEnd end) { result.ends[request] = end; });
    return result;
  }

  std::vector<TextRequest> requests;
};

TEST_P(GeneratorTest, ATextDoesNotDependOnThoseBesideIt) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Result alone = run(1, {}, dtype);
    for (size_t i = 0; i < requests.size(); ++i)
      EXPECT_EQ(static_cast<int64_t>(alone.texts[i].size()), requests[i].most);
    for (const int64_t sequences : {2, 3, 8})
      EXPECT_EQ(run(sequences, {}, dtype), alone) << sequences << " " << dtype_name(dtype);
  }
}

TEST_P(GeneratorTest, TextsEndAtTheirEndTokensOrWhenToldTo) {
  const Result whole = run(2);
  const int32_t end = whole.texts[3][4];
  const Result ended = run(2, {end});
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto at = std::ranges::find(whole.texts[i], end);
    EXPECT_EQ(ended.texts[i], std::vector<int32_t>(whole.texts[i].begin(), at)) << i;
    EXPECT_EQ(ended.ends[i], at == whole.texts[i].end() ? TextEnd::length : TextEnd::end_token);
    EXPECT_EQ(std::ranges::count(whole.texts[i], 5), 0) << "a forbidden token";
  }
  const Result stopped = run(3, {}, DType::f32, 2);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(stopped.texts[i].size(), 2u);
    EXPECT_EQ(stopped.ends[i], TextEnd::stopped);
  }
}

TEST_P(GeneratorTest, AConversationReadsOnlyWhatIsNew) {
  const auto ops = make_cpu_ops(2);
  Engine engine(*ops, GetParam().config, generation_setup(DType::f32, positions));
  engine.allocate();
  engine.store().initialise(7);
  const auto continued = [&](Generator& generator, const std::vector<int32_t>& prompt) {
    std::vector<int32_t> out;
    generator.run_on({prompt, 5, 0}, [&](size_t, int32_t id) {
      out.push_back(id);
      return true;
    });
    return out;
  };
  Generator talking(engine, {.temperature = 0}, {});
  std::vector<int32_t> prompt = requests[1].prompt;
  for (int turn = 0; turn < 3; ++turn) {
    const std::vector<int32_t> reply = continued(talking, prompt);
    Generator fresh(engine, {.temperature = 0}, {});
    // A fresh one overwrites the same caches with the same tokens.
    EXPECT_EQ(continued(fresh, prompt), reply) << turn;
    prompt.insert(prompt.end(), reply.begin(), reply.end());
    prompt.push_back(turn);
  }
  prompt.resize(4);
  EXPECT_EQ(continued(talking, prompt).size(), 5u);
  EXPECT_EQ(message_of([&] {
              talking.run_on({prompt, 41, 0}, [](size_t, int32_t) { return true; });
            }),
            "45 tokens of text do not fit the 32 positions there are");
}

INSTANTIATE_TEST_SUITE_P(Models, GeneratorTest, ::testing::ValuesIn(tiny_models()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace rankine::test

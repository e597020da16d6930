#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "model/model.h"

namespace rankine {
namespace {

// Published sizes; the tied head counts once.
TEST(Parameters, CountsOfKnownModels) {
  EXPECT_EQ(parameter_count(model_preset("gpt2")), 124439808);
  EXPECT_EQ(parameter_count(model_preset("gpt2-medium")), 354823168);
  EXPECT_EQ(parameter_count(model_preset("gpt2-large")), 774030080);
  EXPECT_EQ(parameter_count(model_preset("gpt2-xl")), 1557611200);
  EXPECT_EQ(parameter_count(model_preset("llama-3.2-1b")), 1235814400);
  EXPECT_EQ(parameter_count(model_preset("llama-3-8b")), 8030261248);
  EXPECT_EQ(parameter_count(model_preset("qwen2.5-0.5b")), 494032768);
  EXPECT_EQ(parameter_count(model_preset("qwen3-0.6b")), 596049920);
  EXPECT_EQ(parameter_count(model_preset("mistral-7b")), 7241732096);
}

TEST(Parameters, NamesAreUniqueAndJoinedOnesFollowTheirFirst) {
  for (const std::string& name : model_preset_names()) {
    std::set<std::string> seen;
    const std::vector<ParamSpec> specs = model_parameters(model_preset(name));
    for (size_t i = 0; i < specs.size(); ++i) {
      EXPECT_TRUE(seen.insert(specs[i].name).second) << specs[i].name;
      EXPECT_EQ(specs[i].decay, specs[i].shape.rank() == 2) << specs[i].name;
      EXPECT_GE(specs[i].stored_rows, specs[i].shape[0]);
      if (specs[i].joined) {
        ASSERT_GT(i, 0u);
        EXPECT_EQ(specs[i].shape.rank(), specs[i - 1].shape.rank());
        EXPECT_EQ(specs[i - 1].stored_rows, specs[i - 1].shape[0]) << "no gap inside a group";
      }
    }
  }
}

TEST(Parameters, FlopsPerTokenOfGpt2) {
  // N = 124,439,808 - 1024 * 768 positions; 6 N + 6 * 12 * 1024 * 768.
  EXPECT_DOUBLE_EQ(training_flops_per_token(model_preset("gpt2"), 1024),
                   6.0 * (124439808 - 786432) + 6.0 * 12 * 1024 * 768);
}

TEST(Presets, UnknownNamesGetTheNearest) {
  try {
    model_preset("gtp2");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(e.what()).find("'gpt2'"), std::string::npos) << e.what();
  }
}

TEST(Config, InconsistentSizesAreNamed) {
  const auto refusal = [](auto&& change) {
    ModelConfig c = model_preset("tiny");
    change(c);
    try {
      check(c);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal([](ModelConfig&) {}), "");
  EXPECT_NE(refusal([](ModelConfig& c) { c.kv_heads = 3; }).find("key/value"), std::string::npos);
  EXPECT_NE(refusal([](ModelConfig& c) { c.head_dim = 33; }).find("odd"), std::string::npos);
  EXPECT_NE(refusal([](ModelConfig& c) { c.layers = 0; }).find("layers"), std::string::npos);
  EXPECT_NE(refusal([](ModelConfig& c) { c.vocabulary = -1; }).find("vocabulary"),
            std::string::npos);
}

}  // namespace
}  // namespace rankine

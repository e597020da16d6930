#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "options/run_options.h"
#include "runtime/metrics.h"
#include "runtime/run_state.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

// What a run leaves behind, and the options it is made from.
namespace rankine::test {
namespace {

StepMetrics metrics_of(int64_t step) {
  StepMetrics m;
  m.report.step = step;
  m.report.loss = 2.5;
  m.report.grad_norm = std::nan("");
  return m;
}

TEST(Metrics, NonFiniteNumbersBecomeNull) {
  const auto json = nlohmann::json::parse(metrics_line(metrics_of(3)));
  EXPECT_EQ(json["step"], 3);
  EXPECT_EQ(json["loss"], 2.5);
  EXPECT_TRUE(json["grad_norm"].is_null());
  EXPECT_FALSE(json.contains("validation_loss"));
}

TEST(Metrics, ResumingDropsWhatLiesBehindTheCheckpoint) {
  TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  {
    MetricsFile file(path, 0);
    for (int64_t step = 1; step <= 5; ++step) file.write(metrics_of(step));
  }
  std::ofstream(path, std::ios::app) << "{\"step\": 6, \"lo";  // a line cut by a kill
  MetricsFile resumed(path, 3);
  resumed.write(metrics_of(4));
  std::string expected;
  for (int64_t step = 1; step <= 4; ++step) expected += metrics_line(metrics_of(step)) + "\n";
  EXPECT_EQ(read_text(path), expected);
}

TEST(Metrics, SaysWhichStepsAreMissing) {
  TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  std::string text;
  for (const int64_t step : {1, 2, 2, 5}) text += metrics_line(metrics_of(step)) + "\n";
  folder.write("metrics.jsonl", text + "garbage\n" + metrics_line(metrics_of(6)) + "\n");
  const MetricsFile file(path, 6);
  EXPECT_NE(file.warning().find("metrics.jsonl' has 1 lines that are no metrics, left out, and "
                                "lacks 2 of the steps up to 6, the first is 3"),
            std::string::npos)
      << file.warning();
  EXPECT_EQ(MetricsFile(path, 2).warning(), "");
  EXPECT_NE(MetricsFile(folder / "absent", 3).warning().find("lacks 3 of the steps"),
            std::string::npos);
}

TEST(Metrics, ReplacesNoOtherFile) {
  TemporaryFolder folder;
  for (const char* text : {"my notes\n", "{\"a\": 1}\n", "x"}) {
    folder.write("notes", text);
    for (const int64_t after : {0, 5})
      EXPECT_EQ(test::error_of([&] { MetricsFile(folder / "notes", after); }).kind(),
                ErrorKind::usage);
    EXPECT_EQ(read_text(folder / "notes"), text);
  }
}

TEST(RunState, SurvivesItsText) {
  RunState state;
  state.step = 12;
  state.tokens = 3456;
  state.trainer = {11, {32768, 17, 1}, true};
  state.model = model_preset("qwen3-0.6b");
  state.tokenizer = "bytes";
  state.data_identity = "10 tokens, \"quoted\"";
  state.configuration = "lr = 0.1  # default\n";
  const RunState back = parse_run_state(run_state_text(state), "test");
  EXPECT_EQ(back.step, state.step);
  EXPECT_TRUE(back.trainer.lags);
  EXPECT_EQ(back.tokens, state.tokens);
  EXPECT_EQ(back.trainer.updates, 11);
  EXPECT_EQ(back.trainer.loss_scale.scale, 32768);
  EXPECT_EQ(back.trainer.loss_scale.finite_steps, 17);
  EXPECT_EQ(back.trainer.loss_scale.tolerance, 1);
  EXPECT_EQ(back.model, state.model);
  EXPECT_EQ(back.data_identity, state.data_identity);
  EXPECT_EQ(back.configuration, state.configuration);
  EXPECT_EQ(error_of([] { parse_run_state("{\"step\": -1}", "test"); }).kind(), ErrorKind::data);
}

struct Batch {
  int64_t micro, global, accumulation, degree, expected_micro, expected_global, expected_sum;
};

TEST(Options, TwoOfTheBatchSizesGiveTheThird) {
  for (const Batch& b :
       {Batch{0, 0, 0, 1, 8, 8, 1}, Batch{4, 0, 3, 1, 4, 12, 3}, Batch{4, 16, 0, 2, 4, 16, 2},
        Batch{0, 24, 3, 2, 4, 24, 3}, Batch{0, 32, 0, 1, 8, 32, 4}, Batch{0, 2, 0, 1, 2, 2, 1},
        Batch{2, 12, 6, 1, 2, 12, 6}}) {
    RunOptions o;
    o.micro_batch_size = b.micro;
    o.global_batch_size = b.global;
    o.accumulation = b.accumulation;
    derive_batch(o, b.degree);
    EXPECT_EQ(o.micro_batch_size, b.expected_micro);
    EXPECT_EQ(o.global_batch_size, b.expected_global);
    EXPECT_EQ(o.accumulation, b.expected_sum);
  }
}

TEST(Options, BatchSizesThatDoNotMultiplyAreNamed) {
  for (const Batch& b : {Batch{3, 8, 0, 1, 0, 0, 0}, Batch{2, 8, 3, 1, 0, 0, 0},
                         Batch{0, 7, 2, 1, 0, 0, 0}, Batch{8, 8, 0, 2, 0, 0, 0}}) {
    RunOptions o;
    o.micro_batch_size = b.micro;
    o.global_batch_size = b.global;
    o.accumulation = b.accumulation;
    const Error error = error_of([&] { derive_batch(o, b.degree); });
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find(std::to_string(b.global)), std::string::npos);
  }
}

}  // namespace
}  // namespace rankine::test

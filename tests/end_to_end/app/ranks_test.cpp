#include <sstream>

#include "ranks_run.h"

// Several ranks train what one rank trains, and continue each other's runs.
namespace rankine::test {
namespace {

using Ranks = RanksRun;

TEST_F(Ranks, LossesAreThoseOfOneRankAtEveryZeroStage) {
  for (const std::string precision : {"f32", "bf16"}) {
    const std::vector<std::string> common{"--steps",         "4", "--precision", precision,
                                          "--eval-interval", "2"};
    const auto output = [&](const std::string& name) {
      auto more = common;
      more.insert(more.end(), {"--output", at(name + precision)});
      return more;
    };
    succeed(train_ranks(1, output("alone-")));
    for (const std::string zero : {"0", "1", "2", "3"}) {
      const std::string name = "zero" + zero + "-";
      auto more = output(name);
      more.insert(more.end(), {"--zero", zero});
      succeed(train_ranks(2, more));
      expect_near_losses(name + precision, "alone-" + precision, 1e-5);
    }
  }
}

TEST_F(Ranks, StrictSumsHaveTheSameBitsOnEveryPowerOfTwo) {
  struct Layout {
    int ranks;
    std::string zero;
  };
  for (const std::string precision : {"f32", "bf16"}) {
    std::vector<std::string> first;
    std::string model;
    for (const Layout& layout :
         {Layout{1, "0"}, Layout{2, "3"}, Layout{2, "0"}, Layout{4, "1"}, Layout{4, "2"}}) {
      const std::string name = precision + "-" + std::to_string(layout.ranks) + "-" + layout.zero;
      succeed(train_ranks(layout.ranks,
                          {"--strict", "--steps", "3", "--precision", precision, "--zero",
                           layout.zero, "--output", at(name), "--global-batch-size", "8"}));
      if (first.empty()) {
        first = numbers(home() / name);
        model = exported(name);
        ASSERT_GT(model.size(), 10000u);
      }
      EXPECT_EQ(numbers(home() / name), first) << name;
      EXPECT_TRUE(exported(name) == model) << name;
    }
  }
}

TEST_F(Ranks, ACheckpointContinuesOnOtherRanksAndStages) {
  const std::vector<std::string> common{"--steps", "8", "--zero", "3", "--save-interval", "4"};
  auto whole = train_ranks(2, common);
  whole.insert(whole.end(), {"--output", at("whole")});
  succeed(whole);
  struct Layout {
    int ranks;
    std::string zero;
  };
  for (const Layout& layout : {Layout{1, "0"}, Layout{4, "1"}, Layout{3, "2"}}) {
    const std::string name = "on" + std::to_string(layout.ranks);
    fs::copy(home() / "whole", home() / name, fs::copy_options::recursive);
    fs::remove_all(home() / name / "step-00000008");
    const Finished done = run(resume_ranks(layout.ranks, name, {"--zero", layout.zero}));
    ASSERT_EQ(done.code, 0) << done.err;
    EXPECT_NE(done.err.find("resumed   from step 4"), std::string::npos) << done.err;
    EXPECT_NE(done.err.find("changed   zero"), std::string::npos) << done.err;
    EXPECT_EQ(done.err.find("changed   global"), std::string::npos) << done.err;
    expect_near_losses(name, "whole", 1e-5);
    EXPECT_EQ(metrics(home() / name)[7]["ranks"], layout.ranks);
  }
  const Finished inspected = run({"inspect", at("whole")});
  EXPECT_EQ(inspected.code, 0) << inspected.err;
  EXPECT_NE(inspected.out.find("29.9 K"), std::string::npos) << inspected.out;
  const Finished text = run({"generate", "--model", at("whole"), "--prompt", "The engine",
                             "--max-tokens", "4", "--threads", "1"});
  EXPECT_EQ(text.code, 0) << text.err;
}

TEST_F(Ranks, AStrictRunContinuesOnOtherRanksWithTheSameBits) {
  const std::vector<std::string> common{"--strict", "--steps",   "6",  "--save-interval",
                                        "3",        "--zero",    "3",  "--global-batch-size",
                                        "8",        "--dropout", "0.1"};
  auto whole = train_ranks(2, common);
  whole.insert(whole.end(), {"--output", at("whole")});
  succeed(whole);
  for (const int ranks : {1, 4}) {
    const std::string name = "on" + std::to_string(ranks);
    fs::copy(home() / "whole", home() / name, fs::copy_options::recursive);
    fs::remove_all(home() / name / "step-00000006");
    succeed(resume_ranks(ranks, name, {"--zero", "1"}));
    EXPECT_EQ(numbers(home() / name), numbers(home() / "whole")) << ranks << " ranks";
    EXPECT_TRUE(exported(name) == exported("whole")) << ranks << " ranks";
  }
}

TEST_F(Ranks, MetricsNameTheRanksAndTheirTraffic) {
  succeed(train_ranks(2, {"--steps", "2", "--zero", "1", "--output", at("two")}));
  succeed(train_ranks(1, {"--steps", "2", "--output", at("one")}));
  const std::vector<Json> two = metrics(home() / "two"), one = metrics(home() / "one");
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0]["ranks"], 2);
  EXPECT_EQ(one[0]["ranks"], 1);
  EXPECT_EQ(one[0]["bytes_sent"]["data"], 0);
  // Half of the f32 gradients goes out and half of the updated f32 parameters.
  const auto sent = two[1]["bytes_sent"]["data"].get<int64_t>();
  EXPECT_GT(sent, 29'000 * 4);
  EXPECT_LT(sent, 29'000 * 4 * 1.5);
  EXPECT_EQ(two[1]["memory"]["planned"], two[1]["memory"]["arena_peak"]);
}

TEST_F(Ranks, AForeignLauncherStartsThemAsWell) {
  if (open_mpi_launcher().empty()) GTEST_SKIP() << "Open MPI's mpirun is not in PATH";
  const auto words = train_ranks(1, {"--steps", "3", "--zero", "2", "--output", at("foreign")});
  const Finished done = run_command(home(), words, under_mpirun(2));
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(occurrences(done.err, "2 ranks, 2 processes on 1 host"), 1u) << done.err;
  succeed(train_ranks(1, {"--steps", "3", "--output", at("alone")}));
  expect_near_losses("foreign", "alone", 1e-5);
}

TEST_F(Ranks, ManyRanksShareFewProcessors) {
  succeed(train_ranks(
      8, {"--steps", "3", "--zero", "3", "--global-batch-size", "8", "--output", at("eight")}));
  EXPECT_EQ(metrics(home() / "eight").size(), 3u);
}

class RankRefusals : public RanksRun {
 protected:
  // The job ends with `code` and one message, in which all of `says` stand.
  static void check(const Finished& done, int code, const std::vector<std::string>& says) {
    EXPECT_EQ(done.code, code) << done.err;
    EXPECT_EQ(occurrences("\n" + done.err, "\nrankine: "), 1u) << done.err;
    for (const std::string& part : says) EXPECT_EQ(occurrences(done.err, part), 1u) << done.err;
  }
};

TEST_F(RankRefusals, NumbersThatDoNotFitAreNamedOnce) {
  check(run(train_ranks(3, {"--data-parallel", "2", "--output", at("run")})), 2,
        {"3 ranks", "--data-parallel 2"});
  check(run(train_ranks(2, {"--global-batch-size", "9", "--output", at("run")})), 2,
        {"--global-batch-size 9", "2 data-parallel ranks"});
  EXPECT_FALSE(fs::exists(home() / "run"));
  if (open_mpi_launcher().empty()) GTEST_SKIP() << "Open MPI's mpirun is not in PATH";
  check(run_command(home(), train_ranks(3, {"--output", at("run")}), under_mpirun(2)), 2,
        {"--ranks 3", "started 2"});
  check(run_command(home(), train_ranks(1, {"--data-parallel", "3", "--output", at("run")}),
                    under_mpirun(2)),
        2, {"2 ranks", "--data-parallel 3"});
  EXPECT_FALSE(fs::exists(home() / "run"));
}

TEST_F(RankRefusals, AFaultOfEveryRankIsPrintedOnce) {
  check(run(train_ranks(4, {"--data", at("absent.txt"), "--output", at("run")})), 4,
        {"absent.txt"});
  check(run(train_ranks(3, {"--memory-limit", "300KiB", "--output", at("run")})), 5,
        {"the limit is 300 KiB"});
  EXPECT_FALSE(fs::exists(home() / "run"));
  succeed(train_ranks(1, {"--steps", "1", "--output", at("run")}));
  check(run(train_ranks(2, {"--steps", "1", "--output", at("run")})), 2, {"--resume"});
  write_text_atomically(home() / "run" / "step-00000001" / "manifest.json", "{}");
  check(run(resume_ranks(2, "run")), 4, {"step-00000001/manifest.json"});
}

TEST_F(RankRefusals, TheAdviceOfARefusedPlanFits) {
  const std::vector<std::string> common{
      "--memory-limit", "1MiB", "--global-batch-size", "64", "--steps", "1", "--output", at("run")};
  auto refused_words = train_ranks(2, common);
  refused_words.insert(refused_words.end(), {"--micro-batch-size", "32"});
  const Finished refused = run(refused_words);
  check(refused, 5, {"it would fit with --micro-batch-size "});
  const std::string advice = "it would fit with ";
  const size_t begin = refused.err.find(advice) + advice.size();
  const size_t end = refused.err.find(':', begin);
  std::istringstream words(refused.err.substr(begin, end - begin));
  auto again = train_ranks(2, common);
  for (std::string word; words >> word;) again.push_back(word);
  succeed(again);
}

}  // namespace
}  // namespace rankine::test

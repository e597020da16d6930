#include <gtest/gtest.h>

#include "base/file.h"
#include "state/optimizer.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

// Settings of the optimizer that follow from each other or contradict each other.
namespace rankine {
namespace {

using test::message_of;

struct Settled {
  OptimizerOptions options;
  int64_t steps = 200;
  std::vector<std::string> warnings;
};

Settled settled(const std::vector<std::string>& arguments, const StoredOptions& stored = {}) {
  Settled out;
  OptionTable table;
  declare_options(table, out.options);
  table.integer({"steps"}, &out.steps, "", {.least = 1});
  parse_options(table, arguments, stored);
  out.warnings = settle(out.options, out.steps, table);
  return out;
}

std::string refusal(const std::vector<std::string>& arguments) {
  return message_of([&] { settled(arguments); });
}

TEST(OptimizerOptions, TheMinimumIsATenthOfThePeakUnlessGiven) {
  EXPECT_EQ(settled({}).options.min_lr, 3e-5);
  EXPECT_EQ(settled({"--lr", "1e-5"}).options.min_lr, 1e-6);
  EXPECT_EQ(settled({"--lr", "6e-4"}).options.min_lr, 6e-5);
  EXPECT_EQ(settled({"--lr", "1e-5", "--min-lr", "1e-5"}).options.min_lr, 1e-5);
  EXPECT_EQ(settled({"--lr", "0"}).options.min_lr, 0);
  const Settled low = settled({"--lr", "1e-5"});
  double before = 1;
  for (int64_t step = 1; step <= low.steps; ++step) {
    const double rate = learning_rate(low.options, step, low.steps);
    EXPECT_LE(rate, before) << step;
    before = rate;
  }
  EXPECT_EQ(before, 1e-6);
}

TEST(OptimizerOptions, ARateThatWouldRiseOrNeverGetThereIsRefused) {
  EXPECT_NE(refusal({"--lr", "1e-5", "--min-lr", "3e-5"}).find("above the peak"),
            std::string::npos);
  EXPECT_NE(refusal({"--warmup-steps", "200"}).find("at most 199"), std::string::npos);
  EXPECT_NE(refusal({"--warmup-steps", "9", "--steps", "4"}).find("--steps 4"), std::string::npos);
  EXPECT_NO_THROW(settled({"--warmup-steps", "199"}));
  const std::vector<std::string> wsd{"--lr-decay-style", "wsd", "--wsd-decay-fraction", "0.5"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), wsd.begin(), wsd.end());
    return more;
  };
  EXPECT_NO_THROW(settled(with({"--warmup-steps", "100"})));
  EXPECT_NE(refusal(with({"--warmup-steps", "101"})).find("behind step 100"), std::string::npos);
}

TEST(OptimizerOptions, WhatTheDecayDoesNotReadIsRefused) {
  EXPECT_NE(refusal({"--lr-decay-style", "constant", "--min-lr", "0"}).find("--min-lr has no"),
            std::string::npos);
  EXPECT_NE(refusal({"--wsd-decay-fraction", "0.2"}).find("--wsd-decay-fraction has no"),
            std::string::npos);
  EXPECT_EQ(settled({"--lr-decay-style", "constant", "--lr", "1e-5"}).options.min_lr, 3e-5)
      << "so that the stored configuration is read again";
}

TEST(OptimizerOptions, ARunGoesOnAsItWasStored) {
  const test::TemporaryFolder folder;
  const StoredOptions own{"lr = 1e-5\nmin-lr = 3e-5\nwarmup-steps = 300\nsteps = 200\n", "own"};
  const std::string stored = folder.write("c.toml", own.text).string();
  const Settled resumed = settled({}, own);
  EXPECT_EQ(resumed.options.min_lr, 3e-5);
  ASSERT_EQ(resumed.warnings.size(), 2U);
  EXPECT_NE(resumed.warnings[0].find("goes on as it began"), std::string::npos);
  EXPECT_NE(refusal({"--config", stored}).find("above the peak"), std::string::npos);
  EXPECT_NE(message_of([&] {
              settled({"--lr", "2e-5"}, own);
            }).find("above the peak"),
            std::string::npos);
}

TEST(OptimizerOptions, StayWithinWhatF32CanDo) {
  EXPECT_NE(refusal({"--beta1", "1"}).find("beta1"), std::string::npos);
  EXPECT_NE(refusal({"--beta2", "0.99999999"}).find("beta2"), std::string::npos);
  EXPECT_NE(refusal({"--epsilon", "1e-50"}).find("epsilon"), std::string::npos);
  EXPECT_NE(refusal({"--lr", "1e39"}).find("lr"), std::string::npos);
  EXPECT_NE(refusal({"--clip-grad", "-1"}).find("clip-grad"), std::string::npos);
  const AdamWStep step = adamw_step(
      settled({"--beta1", "0.999999", "--beta2", "0.999999", "--epsilon", "1.2e-38"}).options, 1,
      1e-3, 1);
  EXPECT_LT(step.beta1, 1.0F);
  EXPECT_GT(step.bias_correction1, 0.0F);
  EXPECT_GT(step.epsilon, 0.0F);
}

}  // namespace
}  // namespace rankine

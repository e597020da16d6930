#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "schedule/pipeline.h"
#include "schedule/simulate.h"
#include "support/published.h"

// Bubble rates against tables 5 and 8 of the zero-bubble paper (arXiv 2401.10241), from the seconds
// of its table 9. Its rate is 1 - m (F + B + W) / cost, where cost is the longest time that any one
// rank takes from its first F to its last B or W. A transfer takes its time and no rank's.
namespace rankine {
namespace {

using test::Cells;
using test::published_rows;

struct Setting {
  std::string model;
  int ranks = 1, micros = 1;
  auto operator<=>(const Setting&) const = default;
};
Setting setting_of(const Cells& row) {
  return {row[0], std::stoi(row[1]), std::stoi(row[2])};
}
std::string text_of(const Setting& s) {
  return fmt::format("{}, {} ranks, {} micro-batches", s.model, s.ranks, s.micros);
}

// Of a whole rank's layers; backward_input is the paper's B.
std::map<Setting, ComputationSeconds> profiled_seconds() {
  std::map<Setting, ComputationSeconds> out;
  for (const Cells& row : published_rows("zerobubble_table9_profiled_times.csv"))
    out[setting_of(row)] = {std::stod(row[3]), std::stod(row[4]), std::stod(row[5]),
                            std::stod(row[6])};
  return out;
}

// The paper gives each virtual stage one layer (its table 3; the two outer stages have one less).
int layers_per_rank(const Setting& s) {
  const std::map<std::string, int> layers = {
      {"1.5B", 22}, {"6.2B", 30}, {"14.6B", 46}, {"28.3B", 62}};
  return (layers.at(s.model) + 2) / s.ranks;
}

// The paper's own simulation of interleaved stages awaits, of what comes from the last rank round
// to the first (and back), only the first of each `ranks` micro-batches.
enum class Awaited { all, first_of_each_round };

bool is_awaited(const Action& transfer, const Setting& s, Awaited awaited) {
  const int place = transfer.stage % s.ranks, first = 0, last = s.ranks - 1;
  const auto goes_round = [&](int sent_from, int received_at) {
    using enum ActionKind;
    if (transfer.kind == send_activation || transfer.kind == send_gradient)
      return place == sent_from;
    return place == received_at;
  };
  const bool forwards = transfer.kind == ActionKind::send_activation ||
                        transfer.kind == ActionKind::receive_activation;
  return awaited == Awaited::all || transfer.micro % s.ranks == 0 ||
         !(forwards ? goes_round(last, first) : goes_round(first, last));
}

double cost_of(ScheduleKind kind, const Setting& s, const ComputationSeconds& rank_seconds,
               Awaited awaited = Awaited::all) {
  const int stages = kind == ScheduleKind::interleaved ? layers_per_rank(s)
                     : kind == ScheduleKind::zb_v      ? 2
                                                       : 1;
  ComputationSeconds seconds = rank_seconds;
  seconds.forward /= stages;
  seconds.backward_input /= stages;
  seconds.backward_weight /= stages;
  const Schedule schedule = make_schedule(kind, {s.ranks, s.micros, stages}, seconds);
  std::vector<RankProgram> ranks;
  for (int rank = 0; rank < s.ranks; ++rank) {
    ranks.push_back(
        {.place = {.pipeline = rank},
         .program = add_transfers(schedule.ranks[static_cast<size_t>(rank)], schedule, rank)});
    std::erase_if(ranks.back().program, [&](const Action& action) {
      return !computes(action.kind) && action.kind != ActionKind::update &&
             !is_awaited(action, s, awaited);
    });
  }
  const CostTable cost{.seconds =
                           [&](int, const Action& action) {
                             switch (action.kind) {
                               case ActionKind::forward:
                                 return seconds.forward;
                               case ActionKind::backward:
                                 return seconds.backward_input + seconds.backward_weight;
                               case ActionKind::backward_input:
                                 return seconds.backward_input;
                               case ActionKind::backward_weight:
                                 return seconds.backward_weight;
                               case ActionKind::send_activation:
                               case ActionKind::send_gradient:
                                 return seconds.transfer;
                               default:
                                 return 0.0;
                             }
                           },
                       .memory_change = {}};
  double longest = 0;
  for (const RankTimeline& timeline : simulate(ranks, cost).ranks) {
    double end = 0;
    for (const TimelineEntry& entry : timeline.compute)
      if (computes(entry.action.kind)) end = std::max(end, entry.end);
    longest = std::max(longest, end - timeline.compute.front().start);
  }
  return longest;
}

double rate_of(double cost, const Setting& s, const ComputationSeconds& t) {
  return 1 - s.micros * (t.forward + t.backward_input + t.backward_weight) / cost;
}

class PublishedBubbles : public testing::Test {
 protected:
  void SetUp() override {
    if (seconds_.empty()) GTEST_SKIP() << "no published tables; set RANKINE_PUBLISHED";
  }
  // Calls visit(setting, seconds, published rate) for each row of the schedule; how many.
  template <class Visit>
  int each(const std::string& table, const std::string& schedule, const Visit& visit) {
    int rows = 0;
    for (const Cells& row : published_rows(table)) {
      if (row[3] != schedule || !seconds_.contains(setting_of(row))) continue;
      SCOPED_TRACE(schedule + ", " + text_of(setting_of(row)));
      visit(setting_of(row), seconds_.at(setting_of(row)), std::stod(row[4]));
      ++rows;
    }
    return rows;
  }
  std::map<Setting, ComputationSeconds> seconds_ = profiled_seconds();
};
const char* const table5 = "zerobubble_table5_bubble_rates.csv";

TEST_F(PublishedBubbles, OneForwardOneBackward) {
  EXPECT_EQ(each(table5, "1F1B",
                 [](const Setting& s, const ComputationSeconds& t, double published) {
                   const double cost = cost_of(ScheduleKind::one_forward_one_backward, s, t);
                   EXPECT_NEAR(rate_of(cost, s, t), published, 1e-4);
                 }),
            12);
}

TEST_F(PublishedBubbles, ZeroBubble) {
  EXPECT_EQ(each(table5, "ZB-H1",
                 [](const Setting& s, const ComputationSeconds& t, double published) {
                   const double cost = cost_of(ScheduleKind::zero_bubble, s, t);
                   EXPECT_NEAR(rate_of(cost, s, t), published, 1e-4);
                 }),
            12);
}

// A rank that awaits every micro-batch that comes round waits for `ranks` transfers more, which the
// published rates leave out.
TEST_F(PublishedBubbles, Interleaved) {
  EXPECT_EQ(each(table5, "1F1B-I",
                 [](const Setting& s, const ComputationSeconds& t, double published) {
                   const ScheduleKind kind = ScheduleKind::interleaved;
                   const double as_published = cost_of(kind, s, t, Awaited::first_of_each_round);
                   EXPECT_NEAR(rate_of(as_published, s, t), published, 1e-4);
                   const double all = cost_of(kind, s, t);
                   EXPECT_NEAR(all - as_published, s.ranks * t.transfer, 1e-6 * all);
                 }),
            12);
}

// Table 8 comes without seconds. Assumed are table 9's F, B and W of the same model, shared out
// over the ranks, and the transfer with which 1F1B has the rate that table 8 gives it.
TEST_F(PublishedBubbles, ZbV) {
  std::map<Setting, std::map<std::string, double>> published;
  for (const Cells& row : published_rows("zerobubble_table8_bubble_rates_zbv.csv"))
    published[setting_of(row)][row[3]] = std::stod(row[4]);
  EXPECT_EQ(published.size(), 9U);
  for (auto& [s, rates] : published) {
    const auto known = std::find_if(seconds_.begin(), seconds_.end(), [&](const auto& other) {
      return other.first.model == s.model;
    });
    ASSERT_NE(known, seconds_.end());
    const double share = static_cast<double>(known->first.ranks) / s.ranks;
    ComputationSeconds t = known->second;
    t = {t.forward * share, t.backward_input * share, t.backward_weight * share, 0};
    double low = 0, high = t.forward;
    for (int step = 0; step < 12; ++step) {
      t.transfer = (low + high) / 2;
      const double cost = cost_of(ScheduleKind::one_forward_one_backward, s, t);
      (rate_of(cost, s, t) < rates["1F1B"] ? low : high) = t.transfer;
    }
    const double one = rate_of(cost_of(ScheduleKind::zero_bubble, s, t), s, t);
    const double v = rate_of(cost_of(ScheduleKind::zb_v, s, t), s, t);
    EXPECT_NEAR(one, rates["ZB-H1"], 0.045 * rates["ZB-H1"]) << text_of(s);
    EXPECT_NEAR(v, rates["ZB-V"], 0.045 * rates["ZB-V"]) << text_of(s);
  }
}

}  // namespace
}  // namespace rankine

#include "plan/memory_curve.h"

#include <gtest/gtest.h>

#include <numeric>

#include "comm/world.h"
#include "runtime/engine.h"
#include "support/tiny_models.h"

namespace rankine::test {
namespace {

constexpr MicroShape shape{2, 16};
constexpr int micros = 4;

// The plan of one of two pipeline ranks; nothing is allocated.
struct Planned {
  explicit Planned(ScheduleKind kind, int64_t zero, int rank = 0)
      : ops(make_cpu_ops(1)),
        mesh(Mesh::planned({{2, 2, 1}}, rank * 2, 1)),
        engine(*ops, tiny_models()[0].config,
               {.shape = shape,
                .compute = DType::bf16,
                .purpose = Purpose::training,
                .positions = shape.tokens},
               {.schedule = make_schedule(kind, {.ranks = 2, .micros = micros}),
                .zero = zero_stage(zero),
                .mesh = &mesh}) {}
  std::unique_ptr<Ops> ops;
  Mesh mesh;
  Engine engine;
};

int64_t saved_at(const MemoryCurve& curve, size_t action) {
  return curve.moving[action][static_cast<size_t>(Moving::saved)];
}

TEST(MemoryCurve, StayingAndReservedAreThePlan) {
  for (const ScheduleKind kind :
       {ScheduleKind::gpipe, ScheduleKind::one_forward_one_backward, ScheduleKind::zero_bubble})
    for (const int64_t zero : {0, 2, 3}) {
      const Planned p(kind, zero);
      const MemoryCurve curve = memory_curve(p.engine.step_plan(), p.engine.plan());
      EXPECT_EQ(static_cast<uint64_t>(curve.staying_bytes() + curve.reserved),
                p.engine.plan().peak_bytes(Tier::device));
      for (const PlanLine& line : curve.staying)
        EXPECT_TRUE(line.category != "activations" && line.category != "gathered parameters" &&
                    line.category != "gradients under way")
            << line.category << " come and go";
      ASSERT_EQ(curve.moving.size(), p.engine.step_plan().program.size());
      for (const MemoryCurve::Bytes& bytes : curve.moving) {
        EXPECT_LE(MemoryCurve::sum(bytes), curve.reserved);
        EXPECT_LE(MemoryCurve::sum(bytes), MemoryCurve::sum(curve.moving[curve.peak]));
      }
      EXPECT_GT(2 * MemoryCurve::sum(curve.moving[curve.peak]), curve.reserved)
          << "the pools are not much larger than what is in them";
    }
}

// GPipe keeps all four micro-batches of the first rank, 1F1B two of them.
TEST(MemoryCurve, FollowsTheSchedule) {
  const auto most_saved = [](ScheduleKind kind) {
    const Planned p(kind, 0);
    const MemoryCurve curve = memory_curve(p.engine.step_plan(), p.engine.plan());
    int64_t most = 0;
    for (size_t action = 0; action < curve.moving.size(); ++action)
      most = std::max(most, saved_at(curve, action));
    EXPECT_EQ(saved_at(curve, curve.moving.size() - 1), 0) << "nothing is kept beyond U";
    return most;
  };
  EXPECT_EQ(most_saved(ScheduleKind::gpipe),
            2 * most_saved(ScheduleKind::one_forward_one_backward));
}

TEST(MemoryCurve, StaysAtThePeakAddUp) {
  const Planned p(ScheduleKind::one_forward_one_backward, 3, 1);
  const MemoryCurve curve = memory_curve(p.engine.step_plan(), p.engine.plan());
  const std::vector<Stay> stays = stays_at(p.engine.step_plan(), curve.peak);
  const int64_t sum =
      std::accumulate(stays.begin(), stays.end(), int64_t{0},
                      [](int64_t bytes, const Stay& stay) { return bytes + stay.bytes; });
  EXPECT_EQ(sum, MemoryCurve::sum(curve.moving[curve.peak]));
  EXPECT_GT(curve.moving[curve.peak][static_cast<size_t>(Moving::parameters)], 0);
}

}  // namespace
}  // namespace rankine::test

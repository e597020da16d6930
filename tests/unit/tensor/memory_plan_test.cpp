#include "tensor/memory_plan.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/arena.h"

namespace rankine {
namespace {

MemoryPlan example() {
  MemoryPlan plan;
  plan.add({"weights", "parameters", 100});
  plan.add({"qkv", "activations", 64});
  plan.add({"small", "scratch", 10, Life::scratch, "forward"});
  plan.add({"logits", "scratch", 200, Life::scratch, "forward"});
  plan.add({"grad", "scratch", 300, Life::scratch, "backward"});
  plan.add({"cold", "optimizer states", 5000, Life::permanent, "", Tier::host});
  return plan;
}

TEST(MemoryPlan, PeakSumsLivesAndOverlaysPhases) {
  const MemoryPlan plan = example();
  EXPECT_EQ(plan.permanent_bytes(Tier::device), 128u + 64u);
  EXPECT_EQ(plan.scratch_bytes(Tier::device), 320u);  // forward 64 + 256, backward 320
  EXPECT_EQ(plan.peak_bytes(Tier::device), 128u + 64u + 320u);
  EXPECT_EQ(plan.peak_bytes(Tier::host), 5056u);
  EXPECT_EQ(plan.peak_bytes(Tier::disk), 0u);
}

TEST(MemoryPlan, SummaryAddsUpToThePeak) {
  const MemoryPlan plan = example();
  uint64_t sum = 0;
  for (const PlanLine& line : summary(plan, Tier::device)) sum += line.bytes;
  EXPECT_EQ(sum, plan.peak_bytes(Tier::device));
}

TEST(MemoryPlan, NamesAreUniqueWithinATier) {
  MemoryPlan plan;
  plan.add({"x", "a", 1});
  EXPECT_THROW(plan.add({"x", "b", 2}), Error);
  EXPECT_NO_THROW(plan.add({"x", "a", 1, Life::permanent, "", Tier::host}));
}

TEST(Arena, ReservesThePlanAndMeasuresWhatIsTaken) {
  const MemoryPlan plan = example();
  Arena arena(plan, Tier::device);
  EXPECT_EQ(arena.reserved_bytes(), plan.peak_bytes(Tier::device));
  EXPECT_EQ(arena.peak_bytes(), 0u);
  EXPECT_EQ(arena.unused().size(), 5u);

  const Tensor weights = arena.take("weights", DType::f32, Shape{25});
  const Tensor qkv = arena.take("qkv", DType::bf16, Shape{4, 8});
  const Tensor logits = arena.take("logits", DType::u8, Shape{200});
  const Tensor small = arena.take("small", DType::u8, Shape{10});
  EXPECT_EQ(arena.peak_bytes(), 128u + 64u + 320u);
  EXPECT_EQ(arena.unused(), std::vector<std::string>{"grad"});
  const Tensor grad = arena.take("grad", DType::u8, Shape{300});
  EXPECT_EQ(arena.peak_bytes(), plan.peak_bytes(Tier::device));

  const auto at = [](const Tensor& t) { return static_cast<const char*>(t.data); };
  EXPECT_EQ(at(qkv) - at(weights), 128);
  EXPECT_EQ(at(grad), std::min(at(logits), at(small))) << "phases overlay each other";
  for (int64_t i = 0; i < 25; ++i) EXPECT_EQ(static_cast<float*>(weights.data)[i], 0.0f);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(weights.data) % MemoryPlan::alignment, 0u);
}

TEST(Arena, RefusesWhatIsNotListed) {
  Arena arena(example(), Tier::device);
  EXPECT_THROW(arena.take("absent", DType::f32, Shape{1}), Error);
  EXPECT_THROW(arena.take("weights", DType::f32, Shape{33}), Error) << "132 bytes of 128";
  EXPECT_THROW(arena.take("cold", DType::f32, Shape{1}), Error) << "another tier";
}

}  // namespace
}  // namespace rankine

#include "tensor/device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "io/tier_memory.h"
#include "tensor/arena.h"
#include "tensor/queued/queued_device.h"
#include "tensor/queued/work_queue.h"

namespace rankine {
namespace {

class Gate final : public Operation {
 public:
  explicit Gate(std::atomic<bool>& open) : open_(open) {}
  bool done() override { return open_; }
  void wait() override { open_.wait(false); }
  void end() noexcept override { wait(); }

 private:
  std::atomic<bool>& open_;
};

void open(std::atomic<bool>& gate) {
  gate = true;
  gate.notify_all();
}

void* unchanged(void* memory) {
  return memory;
}

TEST(Device, OnTheHostEveryMarkHasPassed) {
  EXPECT_TRUE(Mark().passed());
  EXPECT_TRUE(host_queue().mark().passed());
  const int from = 7;
  int to = 0;
  host_queue().copy(&to, &from, sizeof to);
  EXPECT_EQ(to, 7);
}

TEST(Device, AQueueRunsBehindWhatItFollows) {
  std::atomic<bool> gate = false;
  const int from = 7;
  int to = 0;
  WorkQueue queue(1, unchanged);
  queue.follow(Mark(std::make_shared<Gate>(gate)));
  queue.copy(&to, &from, sizeof to);
  const Mark mark = queue.mark();
  EXPECT_FALSE(mark.passed());
  open(gate);
  mark.wait();
  EXPECT_EQ(to, 7);
}

TEST(Device, WhatGoesWrongInAQueueShowsAtItsMarks) {
  WorkQueue queue(1, unchanged);
  queue.put([] { fail(ErrorKind::data, "a bad value"); });
  bool ran = false;
  queue.put([&ran] { ran = true; });
  EXPECT_THROW(queue.mark().wait(), Error);
  EXPECT_FALSE(ran);
}

TEST(Device, AnArenaSaysWhoseMemoryItsTensorsAre) {
  MemoryPlan plan;
  plan.add({"a", "tests", 64});
  plan.add({"b", "tests", 64, Life::permanent, "", Tier::host});
  QueuedDevice device(1);
  Arena own(plan, Tier::device, device), host(plan, Tier::host, device);
  const Tensor a = own.take("a", DType::f32, Shape{4, 4}),
               b = host.take("b", DType::f32, Shape{16});
  EXPECT_EQ(a.device, DeviceKind::queued);
  EXPECT_EQ(a.rows(1, 2).device, DeviceKind::queued);
  EXPECT_EQ(a.range(1, 2).device, DeviceKind::queued);
  EXPECT_EQ(a.as(Shape{2, 8}).device, DeviceKind::queued);
  EXPECT_EQ(b.device, DeviceKind::cpu);
}

TEST(DeviceDeathTest, TheHostCannotTouchASimulatedDevicesMemory) {
  QueuedDevice device(1);
  const auto block = device.reserve(4096);
  auto* const bytes = static_cast<volatile char*>(block->data());
  EXPECT_DEATH(bytes[0] = 1, "");
}

TEST(Device, ATiersRequestsStartBehindTheQueue) {
  std::vector<char> slow(4096, 'a');
  QueuedDevice device(1);
  const auto block = device.reserve(4096);
  std::atomic<bool> gate = false;
  WorkQueue queue(1, [&](void* memory) { return device.reach(memory); });
  const auto tier = device.reach(
      std::make_unique<TierMemory>(Tensor{slow.data(), DType::u8, Shape{4096}}), queue);
  const std::vector<char> fresh(4096, 'b');
  queue.follow(Mark(std::make_shared<Gate>(gate)));
  queue.copy(block->data(), fresh.data(), 4096);
  TierWork leaving = tier->start_write(0, block->data(), 4096);
  EXPECT_FALSE(leaving.done());
  open(gate);
  leaving.wait();
  EXPECT_EQ(slow, fresh);
}

}  // namespace
}  // namespace rankine

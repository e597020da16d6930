#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <thread>

#include "base/error.h"
#include "collectives.h"
#include "comm/thread_world.h"

// Operations under way where their handles end: afterwards their memory may go.
namespace rankine {
namespace {

using Start = std::function<Work(Communicator&, Tensor whole)>;

// Memory that nobody may touch once it is gone: its pages stay, but without any access.
class Region {
 public:
  explicit Region(int64_t count) : bytes_(static_cast<size_t>(count) * sizeof(float)) {
    data_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() { ::mprotect(data_, bytes_, PROT_NONE); }
  Tensor tensor() const {
    return test::view(data_, DType::f32, static_cast<int64_t>(bytes_ / sizeof(float)));
  }

 private:
  size_t bytes_;
  void* data_;
};

constexpr int64_t count = 6 << 20;

struct OnTheWay {
  const char* name;
  Start start;
};

std::vector<OnTheWay> operations() {
  const auto part = [](Communicator& c, const Tensor& whole) {
    return whole.range(c.rank() * (count / c.size()), count / c.size());
  };
  return {{"all_reduce",
           [](Communicator& c, Tensor x) { return c.all_reduce(x, Reduction::sum, "t"); }},
          {"reduce_scatter",
           [part](Communicator& c, Tensor x) { return c.reduce_scatter(x, part(c, x), "t"); }},
          {"all_gather",
           [part](Communicator& c, Tensor x) { return c.all_gather(part(c, x), x, "t"); }},
          {"broadcast", [](Communicator& c, Tensor x) { return c.broadcast(x, 0, "t"); }},
          {"send and receive", [](Communicator& c, Tensor x) {
             const int peer = c.rank() ^ 1;
             return c.rank() % 2 == 0 ? c.send(x, peer, "t") : c.receive(x, peer, "t");
           }}};
}

// The fault is the job's, whoever meets it; without the end of what is under way the process dies.
TEST(OperationEnd, AnExceptionEndsWhatIsUnderWayBeforeItsMemoryGoes) {
  for (const auto& [name, start] : operations())
    for (const int ranks : {2, 4}) {
      const auto begin = std::chrono::steady_clock::now();
      std::string what;
      try {
        run_ranks_as_threads(ranks, {.mesh = {{1, ranks, 1}}}, [&, start = start](World& world) {
          const Mesh mesh(world, {{1, ranks, 1}});
          const Region region(count);
          std::vector<Work> works;
          for (int i = 0; i < 8; ++i) works.push_back(start(*mesh.data, region.tensor()));
          if (mesh.rank == 0) {
            while (!works[1].done()) std::this_thread::yield();  // the next one runs
            fail(ErrorKind::resource, "no space left");
          }
          for (Work& work : works) work.wait();
          mesh.data->barrier("end").wait();
        });
      } catch (const Error& e) {
        what = e.what();
      }
      EXPECT_EQ(what, "no space left") << name;
      // Nobody waits for a peer that has gone.
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30)) << name;
    }
}

TEST(OperationEnd, WithoutAnExceptionItIsWaitedFor) {
  run_ranks_as_threads(2, {.mesh = {{1, 2, 1}}}, [](World& world) {
    const Mesh mesh(world, {{1, 2, 1}});
    std::vector<float> x = test::numbers(mesh.rank, 100000);
    {
      const Work work =
          mesh.data->all_reduce(test::view(x.data(), DType::f32, 100000), Reduction::sum, "t");
    }
    EXPECT_EQ(x, test::expected_sum(2, 100000));
    Work work = mesh.data->barrier("first");
    work = mesh.data->barrier("second");  // which ends the first
    work.wait();
  });
}

TEST(OperationEnd, WhatIsStartedAfterwardsFails) {
  std::string later;
  try {
    run_ranks_as_threads(2, {.mesh = {{1, 2, 1}}}, [&](World& world) {
      const Mesh mesh(world, {{1, 2, 1}});
      if (mesh.rank == 1) fail(ErrorKind::data, "a broken file");
      try {
        const Work work = mesh.data->barrier("given up");
        throw std::runtime_error("a fault");
      } catch (const std::runtime_error&) {
      }
      try {
        mesh.data->barrier("later").wait();
      } catch (const Error& e) {
        later = e.what();
        throw;
      }
    });
  } catch (const Error&) {
  }
  EXPECT_NE(later.find("given up"), std::string::npos) << later;
}

TEST(OperationEnd, AHandleMayOutliveItsGroup) {
  run_ranks_as_threads(2, {.mesh = {{1, 2, 1}}}, [&](World& world) {
    Work work;
    try {
      const Mesh mesh(world, {{1, 2, 1}});
      if (mesh.rank == 0) work = mesh.data->barrier("of one rank alone");
      throw std::runtime_error("a fault");
    } catch (const std::runtime_error&) {
    }
    EXPECT_TRUE(work.done());
    if (world.rank() == 0) {
      EXPECT_THROW(work.wait(), Error);
    }
  });
}

}  // namespace
}  // namespace rankine

#include "comm/thread_world.h"

#include <gtest/gtest.h>

#include <atomic>

#include "collectives.h"

namespace rankine {
namespace {

WorldSettings line_of(int ranks, double timeout = 60) {
  return {.timeout_seconds = timeout, .mesh = {{1, ranks, 1}}};
}

std::string failure_of(int ranks, double timeout, const std::function<void(Communicator&)>& body) {
  try {
    run_ranks_as_threads(ranks, line_of(ranks, timeout), [&](World& world) {
      const Mesh mesh(world, {{1, ranks, 1}});
      body(*mesh.data);
    });
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(ThreadWorld, CollectivesAndTransfersAreExactAtEverySize) {
  for (const int ranks : {1, 2, 3, 4, 5, 8})
    run_ranks_as_threads(ranks, line_of(ranks), [&](World& world) {
      const Mesh mesh(world, {{1, ranks, 1}});
      test::check_communicator(*mesh.data);
    });
}

TEST(ThreadWorld, SumsOverHostsAreThoseOfTheDirectExchange) {
  for (const auto& [ranks, per_host] : {std::pair{4, 2}, {6, 2}, {8, 4}})
    run_ranks_as_threads(
        ranks, line_of(ranks),
        [&, size = ranks](World& world) {
          const Mesh mesh(world, {{1, size, 1}});
          test::check_communicator(*mesh.data);
        },
        per_host);
}

TEST(ThreadWorld, GroupsOfAMeshAreIndependent) {
  const MeshShape shape{{2, 2, 2}};
  run_ranks_as_threads(8, {.mesh = shape}, [&](World& world) {
    const Mesh mesh(world, shape);
    int64_t members = mesh.rank, data_sum = mesh.rank;
    // Started in a different order on odd ranks: groups must not wait for each other.
    Work a, b;
    const Tensor x = test::view(&members, DType::i64, 1), y = test::view(&data_sum, DType::i64, 1);
    if (mesh.rank % 2 == 0) a = mesh.tensor->all_reduce(x, Reduction::sum, "tensor");
    b = mesh.data->all_reduce(y, Reduction::sum, "data");
    if (mesh.rank % 2 != 0) a = mesh.tensor->all_reduce(x, Reduction::sum, "tensor");
    a.wait();
    b.wait();
    int64_t tensor_expected = 0, data_expected = 0;
    for (const int r : shape.group(Axis::tensor, mesh.rank)) tensor_expected += r;
    for (const int r : shape.group(Axis::data, mesh.rank)) data_expected += r;
    EXPECT_EQ(members, tensor_expected);
    EXPECT_EQ(data_sum, data_expected);
  });
}

TEST(ThreadWorld, DifferentOperationsAreNamedOnBothSides) {
  const std::string sizes = failure_of(2, 60, [](Communicator& c) {
    std::vector<float> x(static_cast<size_t>(10 + c.rank()));
    c.all_reduce(test::view(x.data(), DType::f32, 10 + c.rank()), Reduction::sum, "gradients")
        .wait();
  });
  EXPECT_NE(sizes.find("operations differ"), std::string::npos) << sizes;
  EXPECT_NE(sizes.find("'gradients' (40 bytes)"), std::string::npos) << sizes;
  EXPECT_NE(sizes.find("'gradients' (44 bytes)"), std::string::npos) << sizes;
  EXPECT_NE(sizes.find("rank 1 (data 1)"), std::string::npos) << sizes;
  const std::string kinds = failure_of(3, 60, [](Communicator& c) {
    std::vector<float> x(12), y(4);
    if (c.rank() == 2)
      c.barrier("odd one").wait();
    else
      c.reduce_scatter(test::view(x.data(), DType::f32, 12), test::view(y.data(), DType::f32, 4),
                       "sum")
          .wait();
  });
  EXPECT_NE(kinds.find("barrier #0 'odd one'"), std::string::npos) << kinds;
  EXPECT_NE(kinds.find("reduce_scatter #0 'sum'"), std::string::npos) << kinds;
  const std::string reductions = failure_of(2, 60, [](Communicator& c) {
    float x = 1;
    c.all_reduce(test::view(&x, DType::f32, 1), c.rank() == 0 ? Reduction::sum : Reduction::max,
                 "mixed")
        .wait();
  });
  EXPECT_NE(reductions.find("operations differ"), std::string::npos) << reductions;
}

TEST(ThreadWorld, AWaitThatTakesTooLongNamesWhoWaitsForWhom) {
  std::atomic<bool> seen{false};
  const std::string silence = failure_of(2, 0.3, [&](Communicator& c) {
    if (c.rank() == 1) {  // takes no part, until the other has given up
      while (!seen) std::this_thread::yield();
      return;
    }
    float x = 1;
    try {
      c.all_reduce(test::view(&x, DType::f32, 1), Reduction::sum, "loss").wait();
    } catch (...) {
      seen = true;
      throw;
    }
  });
  EXPECT_NE(silence.find("rank 0 (data 0) waits in all_reduce #0 'loss'"), std::string::npos)
      << silence;
  EXPECT_NE(silence.find("for rank 1 (data 1)"), std::string::npos) << silence;
}

TEST(ThreadWorld, AFailedRankInterruptsTheOthers) {
  const std::string failure = failure_of(4, 60, [](Communicator& c) {
    if (c.rank() == 2) fail(ErrorKind::data, "a broken file");
    float x = 1;
    c.all_reduce(test::view(&x, DType::f32, 1), Reduction::sum, "loss").wait();
  });
  EXPECT_EQ(failure, "a broken file");
}

TEST(MeshShape, RanksAndCoordinatesAreInverse) {
  for (const MeshShape shape : {MeshShape{{1, 1, 1}}, MeshShape{{2, 3, 4}}, MeshShape{{5, 1, 2}}})
    for (int rank = 0; rank < shape.world(); ++rank) {
      EXPECT_EQ(shape.rank(shape.coordinate(rank)), rank);
      for (const Axis axis : {Axis::pipeline, Axis::data, Axis::tensor}) {
        const std::vector<int> group = shape.group(axis, rank);
        EXPECT_EQ(group.size(), static_cast<size_t>(shape.degree_of(axis)));
        EXPECT_NE(std::find(group.begin(), group.end(), rank), group.end());
      }
    }
  EXPECT_EQ(place_of({{2, 1, 2}}, 3), "rank 3 (pipeline 1, tensor 1)");
  EXPECT_EQ((MeshShape{{2, 2, 2}}.group(Axis::tensor, 4)), (std::vector{4, 5}));
}

}  // namespace
}  // namespace rankine

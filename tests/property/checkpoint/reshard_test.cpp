#include <gtest/gtest.h>

#include <random>

#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "support/host_weights.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

using Random = std::mt19937_64;
using test::HostTensors;

int64_t draw(Random& random, int64_t lowest, int64_t highest) {
  return lowest + static_cast<int64_t>(random() % static_cast<uint64_t>(highest - lowest + 1));
}

struct Logical {
  std::string name;
  Shape shape;
};

std::vector<Logical> random_tensors(Random& random) {
  std::vector<Logical> out;
  for (int64_t i = draw(random, 1, 5); i > 0; --i) {
    std::vector<int64_t> dims;
    for (int64_t rank = draw(random, 0, 4); rank > 0; --rank) dims.push_back(draw(random, 1, 9));
    out.push_back({fmt::format("t{}", i), Shape(std::span<const int64_t>(dims))});
  }
  return out;
}

// Cuts a box at random places until the pieces are many enough: they tile it.
void cut(Random& random, const Box& box, int depth, std::vector<Box>& out) {
  const int rank = box.begin.rank();
  const int dim = rank == 0 ? 0 : static_cast<int>(draw(random, 0, rank - 1));
  if (rank == 0 || depth == 0 || box.end[dim] - box.begin[dim] < 2) {
    out.push_back(box);
    return;
  }
  const int64_t at = draw(random, box.begin[dim] + 1, box.end[dim] - 1);
  cut(random, {box.begin, box.end.with(dim, at)}, depth - 1, out);
  cut(random, {box.begin.with(dim, at), box.end}, depth - 1, out);
}

// All tensors' pieces dealt to the ranks of a mesh.
std::vector<HostTensors> random_mesh(Random& random, const std::vector<Logical>& tensors) {
  std::vector<HostTensors> ranks(static_cast<size_t>(draw(random, 1, 4)));
  for (const Logical& tensor : tensors) {
    std::vector<Box> boxes;
    cut(random, whole(tensor.shape), static_cast<int>(draw(random, 0, 3)), boxes);
    for (const Box& box : boxes) ranks[random() % ranks.size()].add(tensor.name, tensor.shape, box);
  }
  return ranks;
}

void save(const std::filesystem::path& folder, const std::vector<HostTensors>& ranks, Ops& ops) {
  make_folders(folder);
  std::vector<Manifest> manifests;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const TensorGroup group{"weights", ranks[r].list()};
    manifests.push_back(write_rank_file(folder, static_cast<int>(r), {&group, 1}, ops));
  }
  write_text_atomically(folder / manifest_name, manifest_text(join_manifests(manifests, "{}")));
}

void load(const std::filesystem::path& folder, const std::vector<HostTensors>& ranks, Ops& ops) {
  for (const HostTensors& rank : ranks) load_weights(folder, rank.list(), ops);
}

TEST(Reshard, AnyMeshToAnyMeshAndBack) {
  const std::unique_ptr<Ops> ops = make_cpu_ops(1);
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const std::vector<Logical> tensors = random_tensors(random);
    const test::TemporaryFolder folder;
    std::vector<HostTensors> a = random_mesh(random, tensors);
    for (HostTensors& rank : a) rank.fill([&] { return static_cast<float>(random() >> 40); });
    const std::vector<HostTensors> b = random_mesh(random, tensors);
    save(folder / "a", a, *ops);
    load(folder / "a", b, *ops);
    save(folder / "b", b, *ops);

    std::vector<HostTensors> back = a;
    for (size_t r = 0; r < a.size(); ++r) {
      HostTensors fresh;
      for (const NamedTensor& t : a[r].list()) fresh.add(t.name, t.shape, t.box);
      back[r] = std::move(fresh);
    }
    load(folder / "b", back, *ops);
    ASSERT_EQ(back, a);
  }
}

// Overlapping boxes may be wanted, as tied weights on two stages are.
TEST(Reshard, OverlappingWantedBoxesAreAllFilled) {
  const std::unique_ptr<Ops> ops = make_cpu_ops(1);
  const test::TemporaryFolder folder;
  HostTensors stored, wanted;
  stored.add("t", {6, 4}, piece({6, 4}, 1, 0, 2));
  stored.add("t", {6, 4}, piece({6, 4}, 1, 1, 2));
  float next = 0;
  stored.fill([&] { return ++next; });
  wanted.add("t", {6, 4}, whole({6, 4}));
  wanted.add("t", {6, 4}, {{1, 1}, {3, 4}});
  save(folder / "a", {stored}, *ops);
  load_weights(folder / "a", wanted.list(), *ops);
  for (size_t row = 0; row < 6; ++row)
    for (size_t column = 0; column < 4; ++column) {
      const float value = stored.values(column / 2)[row * 2 + column % 2];
      EXPECT_EQ(wanted.values(0)[row * 4 + column], value);
      if (row >= 1 && row < 3 && column >= 1) {
        EXPECT_EQ(wanted.values(1)[(row - 1) * 3 + column - 1], value);
      }
    }
}

}  // namespace
}  // namespace rankine

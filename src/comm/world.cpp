#include "comm/world.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>

#include "comm/group.h"

namespace rankine {
namespace {

class SelfWorld final : public World {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::unique_ptr<Communicator> group(const std::vector<int>& members) override {
    expect(members == std::vector{0}, "a group within the world");
    GroupLinks links;
    links.collective.resize(1);
    return std::make_unique<LinkGroup>(0, std::move(links), GroupSettings{});
  }
  void abort(const std::string&, int) override {}
  std::string host() const override { return host_name(); }
  std::string description() const override { return "one process"; }
};

class PlannedGroup final : public Communicator {
 public:
  PlannedGroup(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Work all_reduce(Tensor, Reduction, std::string_view) override { refuse(); }
  Work reduce_scatter(const Tensor&, Tensor, std::string_view) override { refuse(); }
  Work all_gather(const Tensor&, Tensor, std::string_view) override { refuse(); }
  Work broadcast(Tensor, int, std::string_view) override { refuse(); }
  Work send(const Tensor&, int, std::string_view) override { refuse(); }
  Work receive(Tensor, int, std::string_view) override { refuse(); }
  Work barrier(std::string_view) override { refuse(); }
  void start_behind(Queue&) override {}
  uint64_t bytes_sent() const override { return 0; }

 private:
  [[noreturn]] static void refuse() {
    fail(ErrorKind::internal, "a planned group communicates with nobody");
  }
  int rank_, size_;
};

Tensor view(void* data, DType dtype, size_t count) {
  return {data, dtype, Shape{static_cast<int64_t>(count)}};
}

}  // namespace

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

void keep_freed_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

std::unique_ptr<World> make_self_world() {
  return std::make_unique<SelfWorld>();
}

std::unique_ptr<Communicator> make_planned_group(int rank, int size) {
  return std::make_unique<PlannedGroup>(rank, size);
}

Mesh::Mesh(const MakeGroup& make, const MeshShape& mesh_shape, int own_rank, int kv_replicas)
    : shape(mesh_shape), rank(own_rank), coordinate(mesh_shape.coordinate(own_rank)) {
  std::vector<int> everyone(static_cast<size_t>(shape.world()));
  for (size_t i = 0; i < everyone.size(); ++i) everyone[i] = static_cast<int>(i);
  world = make(everyone);
  states = make(everyone);
  pipeline = make(shape.group(Axis::pipeline, rank));
  pipeline_gradients = make(shape.group(Axis::pipeline, rank));
  data = make(shape.group(Axis::data, rank));
  const std::vector<int> neighbours = shape.group(Axis::tensor, rank);
  tensor = make(neighbours);
  const auto first = neighbours.begin() + at(Axis::tensor) / kv_replicas * kv_replicas;
  replicas = make({first, first + kv_replicas});
}

Mesh::Mesh(World& w, const MeshShape& mesh_shape, int kv_replicas)
    : Mesh([&](const std::vector<int>& members) { return w.group(members); }, mesh_shape, w.rank(),
           kv_replicas) {
  expect(shape.world() == w.size(), "a mesh of all ranks");
}

void Mesh::start_behind(Queue& queue) const {
  for (const auto* group : {&states, &pipeline, &pipeline_gradients, &data, &tensor, &replicas})
    (*group)->start_behind(queue);
}

Mesh Mesh::planned(const MeshShape& shape, int rank, int kv_replicas) {
  return Mesh(
      [&](const std::vector<int>& members) -> std::unique_ptr<Communicator> {
        const auto at = std::ranges::find(members, rank) - members.begin();
        return std::make_unique<PlannedGroup>(static_cast<int>(at),
                                              static_cast<int>(members.size()));
      },
      shape, rank, kv_replicas);
}

std::vector<std::string> all_gather_texts(Communicator& group, const std::string& text,
                                          std::string_view tag) {
  const auto ranks = static_cast<size_t>(group.size());
  int64_t mine = static_cast<int64_t>(text.size());
  std::vector<int64_t> lengths(ranks);
  group.all_gather(view(&mine, DType::i64, 1), view(lengths.data(), DType::i64, ranks), tag).wait();
  const auto longest = static_cast<size_t>(*std::ranges::max_element(lengths));
  std::vector<char> padded(longest), all(longest * ranks);
  std::ranges::copy(text, padded.begin());
  group
      .all_gather(view(padded.data(), DType::u8, longest), view(all.data(), DType::u8, all.size()),
                  tag)
      .wait();
  std::vector<std::string> out;
  for (size_t r = 0; r < ranks; ++r)
    out.emplace_back(all.data() + r * longest, static_cast<size_t>(lengths[r]));
  return out;
}

std::string broadcast_text(Communicator& group, const std::string& text, int root,
                           std::string_view tag) {
  int64_t length = static_cast<int64_t>(text.size());
  group.broadcast(view(&length, DType::i64, 1), root, tag).wait();
  std::string out = text;
  out.resize(static_cast<size_t>(length));
  group.broadcast(view(out.data(), DType::u8, out.size()), root, tag).wait();
  return out;
}

}  // namespace rankine

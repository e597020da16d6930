#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/mesh_shape.h"

// All ranks of a run: where groups of them come from. Backends: one rank alone, ranks as threads of
// one process, ranks as processes that one process of this host started, or that MPI connects.
namespace rankine {

struct WorldSettings {
  double timeout_seconds = 60;  // of one wait for another rank; 0: for ever
  bool shared_memory = true;    // between processes of one host; otherwise everything goes over MPI
  MeshShape mesh;               // how messages call a rank
};

class World {
 public:
  virtual ~World() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // A communicator of these ranks, among them this one, in the order given. All ranks of the world
  // make their groups in the same order, disjoint groups at the same time.
  virtual std::unique_ptr<Communicator> group(const std::vector<int>& members) = 0;
  // Whether this rank is the one to report its failure: of several that fail at about the same time
  // the first rank where possible. May take two seconds.
  virtual bool speaks() { return true; }
  // Ends all ranks because this one failed; where it returns, the others throw.
  virtual void abort(const std::string& why, int exit_code) = 0;
  virtual std::string host() const = 0;
  virtual std::string description() const = 0;  // "2 processes of one host, shared memory"
};

std::unique_ptr<World> make_self_world();

std::string host_name();  // of this machine
// From now on large blocks that are freed stay with the process, which need not fault their pages
// in anew when it takes them again.
void keep_freed_memory();

// A group that says who it is and connects nobody, for plans; its operations are internal errors.
std::unique_ptr<Communicator> make_planned_group(int rank, int size);

// A live mesh. `world` and `states` join all ranks: numbers and texts of the host travel on `world`
// and nothing else does; tensors travel on `states` and on the groups of the axes. Activations and
// gradients of a pipeline pass each other on groups of their own. `replicas` are `kv_replicas`
// neighbours of the tensor axis, which hold the same key/value heads.
struct Mesh {
  Mesh(World& world, const MeshShape& shape, int kv_replicas = 1);
  // Knows where `rank` stands and connects nobody, for plans; operations are internal errors.
  static Mesh planned(const MeshShape& shape, int rank, int kv_replicas = 1);
  int at(Axis axis) const { return coordinate[static_cast<size_t>(axis)]; }
  MeshShape shape;
  int rank;
  MeshShape::Coordinate coordinate;
  std::unique_ptr<Communicator> world, states, pipeline, pipeline_gradients, data, tensor, replicas;
  // All groups that carry tensors start behind a queue's work, Communicator::start_behind().
  void start_behind(Queue& queue) const;

 private:
  using MakeGroup = std::function<std::unique_ptr<Communicator>(const std::vector<int>& members)>;
  Mesh(const MakeGroup& make, const MeshShape& shape, int rank, int kv_replicas);
};

// Texts of all ranks, in order.
std::vector<std::string> all_gather_texts(Communicator& group, const std::string& text,
                                          std::string_view tag);
// The root's text.
std::string broadcast_text(Communicator& group, const std::string& text, int root,
                           std::string_view tag);

}  // namespace rankine

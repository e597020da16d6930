#include "comm/mpi_world.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <thread>

#include "comm/deadline.h"
#include "comm/group.h"
#include "comm/host_rings.h"
#include "comm/mpi/mpi_link.h"
#include "launch/launch.h"
#include "launch/launcher_processes.h"

namespace rankine {
namespace {

class MpiWorld final : public World {
 public:
  explicit MpiWorld(const WorldSettings& settings);
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;
  ~MpiWorld() override;
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<Communicator> group(const std::vector<int>& members) override;
  void abort(const std::string& why, int exit_code) override;
  bool speaks() override;
  std::string host() const override { return host_name(); }
  std::string description() const override;

 private:
  bool share(HostRings& rings, const std::vector<int>& members);
  void add_mpi_links(int peer, int group, size_t piece_bytes, GroupLinks& links);
  Deadline deadline(const char* doing) const;
  bool near(int peer) const {
    return nodes_[static_cast<size_t>(peer)] == nodes_[static_cast<size_t>(rank_)];
  }
  int agreed(int value) const;  // the least over all ranks
  int ranks_per_host(const std::vector<int>& members) const;

  WorldSettings settings_;
  int rank_ = 0, size_ = 1, groups_ = 0;
  std::vector<int> nodes_;  // per rank: the first rank of its host
  MpiGate gate_;
  bool rings_work_ = true;
  std::vector<SharedMemory> mapped_;
};

MpiWorld::MpiWorld(const WorldSettings& settings) : settings_(settings) {
  // Settings that keep oversubscribed ranks and plain TCP from collapsing; the user's own win.
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  setenv("OMPI_MCA_btl_tcp_flags", "1", 0);
  // It warns of processes forked beside it; abort() forks one that leaves MPI alone.
  setenv("OMPI_MCA_mpi_warn_on_fork", "0", 0);
  keep_freed_memory();
  int provided = 0;
  const std::optional<Launched> launched = launched_environment();
  if (launched) rank_ = launched->rank;
  const Deadline limit = deadline("connecting");
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  require(provided >= MPI_THREAD_SERIALIZED, ErrorKind::environment,
          "this MPI cannot be called from several threads one at a time (MPI_THREAD_SERIALIZED)");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  MPI_Comm local;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &local);
  int first = rank_;
  MPI_Bcast(&first, 1, MPI_INT, 0, local);
  MPI_Comm_free(&local);
  nodes_.resize(static_cast<size_t>(size_));
  MPI_Allgather(&first, 1, MPI_INT, nodes_.data(), 1, MPI_INT, MPI_COMM_WORLD);
}

MpiWorld::~MpiWorld() {
  if (!gate_.closed()) MPI_Finalize();
}

// Within MPI a rank waits for others without end. Nothing of MPI can be called then.
Deadline MpiWorld::deadline(const char* doing) const {
  return Deadline(settings_.timeout_seconds, [this, doing] {
    if (rank_ != 0) sleep(2);  // the first speaks for all
    std::string stopped;
    for (const int rank : stopped_ranks())
      stopped += fmt::format("; {} is stopped", place_of(settings_.mesh, rank));
    fmt::print(stderr,
               "rankine: {} waits for the other ranks in MPI ({}) for {:g} s; one of them is "
               "stopped, cut off or stuck (--comm-timeout sets the limit){}\n",
               place_of(settings_.mesh, rank_), doing, settings_.timeout_seconds, stopped);
    end_launcher_after(std::chrono::seconds(5));
    _exit(static_cast<int>(ErrorKind::environment));
  });
}

int MpiWorld::agreed(int value) const {
  int least = value;
  MPI_Allreduce(&value, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return least;
}

// As GroupSettings has it: 1 unless the members lie on hosts evenly.
int MpiWorld::ranks_per_host(const std::vector<int>& members) const {
  const auto node = [&](size_t m) { return nodes_[static_cast<size_t>(members[m])]; };
  size_t local = 1;
  while (local < members.size() && node(local) == node(0)) ++local;
  if (local == members.size() || members.size() % local != 0 || (local & (local - 1)) != 0)
    return 1;
  for (size_t m = 0; m < members.size(); ++m)
    if (node(m) != node(m / local * local) || (m >= local && node(m) == node(m - local))) return 1;
  return static_cast<int>(local);
}

// Whether the rings work on all ranks.
bool MpiWorld::share(HostRings& rings, const std::vector<int>& members) {
  const RingFile told = rings.make();
  std::vector<RingFile> all(static_cast<size_t>(size_)), files;
  MPI_Allgather(&told, sizeof told, MPI_BYTE, all.data(), sizeof told, MPI_BYTE, MPI_COMM_WORLD);
  for (const int member : members) files.push_back(all[static_cast<size_t>(member)]);
  return agreed(rings.open(files) ? 1 : 0) != 0;
}

void MpiWorld::add_mpi_links(int peer, int group, size_t piece_bytes, GroupLinks& links) {
  constexpr int lanes = 3;  // collectives, and transfers in either direction
  const auto add = [&](std::vector<std::unique_ptr<Link>>& list, int out, int in) {
    list.push_back(peer == rank_ ? nullptr
                                 : std::make_unique<MpiLink>(gate_, peer, group * lanes + out,
                                                             group * lanes + in, piece_bytes));
  };
  add(links.collective, 0, 0);
  add(links.sending, 1, 2);
  add(links.receiving, 2, 1);
}

std::unique_ptr<Communicator> MpiWorld::group(const std::vector<int>& members) {
  const auto lock = gate_.enter();
  const Deadline limit = deadline("making groups of ranks");
  const int id = groups_++;
  const auto mine = static_cast<size_t>(std::ranges::find(members, rank_) - members.begin());
  expect(mine < members.size(), "a group has the calling rank in it");
  std::vector<bool> near_members;
  for (const int member : members) near_members.push_back(near(member));
  const auto count = static_cast<size_t>(std::ranges::count(near_members, true));
  // On a network more must be under way between two looks at it, since whoever looks shares the
  // processors with computation.
  const bool network = count < members.size() || !settings_.shared_memory || !rings_work_;
  const RingShape shape = network ? RingShape{2, size_t{1} << 20} : rings_of_one_host(count);
  HostRings rings(near_members, mine, shape);
  if (settings_.shared_memory && rings_work_) rings_work_ = share(rings, members);
  GroupLinks links;
  for (size_t m = 0; m < members.size(); ++m)
    if (settings_.shared_memory && rings_work_ && near(members[m]))
      rings.add_links(m, links);
    else
      add_mpi_links(members[m], id, shape.piece_bytes, links);
  for (SharedMemory& file : rings.take_memory()) mapped_.push_back(std::move(file));
  const GroupSettings group{settings_.timeout_seconds,
                            ranks_per_host(members),
                            shape.piece_bytes,
                            [mesh = settings_.mesh, members](int member) {
                              return place_of(mesh, members[static_cast<size_t>(member)]);
                            },
                            {}};
  return std::make_unique<LinkGroup>(static_cast<int>(mine), std::move(links), group);
}

void MpiWorld::abort(const std::string&, int exit_code) {
  gate_.close();
  // MPI_Abort may hang when the network is cut, and the launcher with it. A rank that left before
  // it could make it crash.
  constexpr int grace = 5;
  end_launcher_after(std::chrono::seconds(grace));
  std::thread([exit_code] {
    sleep(grace + 1);
    _exit(exit_code);
  }).detach();
  MPI_Abort(MPI_COMM_WORLD, exit_code);
}

bool MpiWorld::speaks() {
  if (rank_ != 0) sleep(2);
  return true;
}

std::string MpiWorld::description() const {
  std::vector<int> hosts = nodes_;
  std::ranges::sort(hosts);
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  return fmt::format("{} processes on {} host{}{}", size_, hosts.size(),
                     hosts.size() == 1 ? "" : "s",
                     settings_.shared_memory && rings_work_ ? ", shared memory within a host"
                                                            : ", MPI between all");
}

}  // namespace

std::unique_ptr<World> make_mpi_world(const WorldSettings& settings) {
  return std::make_unique<MpiWorld>(settings);
}

bool built_with_mpi() {
  return true;
}

}  // namespace rankine

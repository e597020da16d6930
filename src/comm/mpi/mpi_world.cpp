#include "comm/mpi_world.h"

#include <fcntl.h>
#include <malloc.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "comm/group.h"
#include "comm/launcher_processes.h"
#include "comm/mpi/mpi_link.h"
#include "comm/shared_memory.h"
#include "comm/shared_ring.h"

namespace rankine {
namespace {

constexpr int lanes = 3;  // collectives, and transfers in either direction
enum Lane { collectives, forth, back };

// What a rank tells of its outgoing rings to the others of its host.
struct RingFile {
  int pid = 0, descriptor = -1;
};

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
  std::string host() const override;
  std::string description() const override;

 private:
  std::vector<SharedMemory> share_rings(const std::vector<int>& members, size_t slots,
                                        size_t piece_bytes);
  size_t place_in(const std::vector<int>& members, int owner, int to) const;
  bool near(int peer) const {
    return nodes_[static_cast<size_t>(peer)] == nodes_[static_cast<size_t>(rank_)];
  }
  int agreed(int value) const;  // the least over all ranks
  int ranks_per_host(const std::vector<int>& members) const;

  WorldSettings settings_;
  int rank_ = 0, size_ = 1, groups_ = 0;
  std::vector<int> nodes_;  // per rank: the first rank of its host
  std::mutex mutex_;        // around every call of MPI
  bool rings_work_ = true;
  std::vector<SharedMemory> mapped_;
};

MpiWorld::MpiWorld(const WorldSettings& settings) : settings_(settings) {
  // Settings that keep oversubscribed ranks and plain TCP from collapsing; the user's own win.
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  setenv("OMPI_MCA_btl_tcp_flags", "1", 0);
  // It warns of processes forked beside it; abort() forks one that leaves MPI alone.
  setenv("OMPI_MCA_mpi_warn_on_fork", "0", 0);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  int provided = 0;
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
  MPI_Finalize();
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

// Offset of the first ring from `owner` to `to` in the owner's file, counted in rings.
size_t MpiWorld::place_in(const std::vector<int>& members, int owner, int to) const {
  size_t before = 0;
  for (const int member : members) {
    if (member == to) return before * lanes;
    if (member != owner && near(member)) ++before;
  }
  fail(ErrorKind::internal, "rank {} is no member of the group", to);
}

// Every rank makes one file of rings towards the members of its host and maps theirs. Returns the
// files by member, none when that works not everywhere.
std::vector<SharedMemory> MpiWorld::share_rings(const std::vector<int>& members, size_t slots,
                                                size_t piece_bytes) {
  const auto peers = static_cast<size_t>(
      std::ranges::count_if(members, [&](int m) { return m != rank_ && near(m); }));
  const size_t bytes = peers * lanes * SharedRing::bytes(slots, piece_bytes);
  SharedMemory mine = peers > 0 ? SharedMemory::create(bytes) : SharedMemory();
  RingFile told{getpid(), mine.descriptor()};
  std::vector<RingFile> files(static_cast<size_t>(size_));
  MPI_Allgather(&told, sizeof told, MPI_BYTE, files.data(), sizeof told, MPI_BYTE, MPI_COMM_WORLD);
  std::vector<SharedMemory> out;
  bool works = peers == 0 || mine.data() != nullptr;
  for (const int member : members) {
    if (member == rank_) {
      out.emplace_back();
      std::swap(out.back(), mine);
      continue;
    }
    const RingFile& file = files[static_cast<size_t>(member)];
    out.push_back(works && near(member) ? SharedMemory::open_of(file.pid, file.descriptor, bytes)
                                        : SharedMemory());
    works = works && (!near(member) || out.back().data() != nullptr);
  }
  if (agreed(works ? 1 : 0) == 0) return {};
  return out;
}

std::unique_ptr<Communicator> MpiWorld::group(const std::vector<int>& members) {
  const std::lock_guard lock(mutex_);
  const int id = groups_++;
  const auto mine = static_cast<size_t>(std::ranges::find(members, rank_) - members.begin());
  expect(mine < members.size(), "a group has the calling rank in it");
  size_t near_members = 0;
  for (const int member : members) near_members += near(member) ? 1 : 0;
  // Pieces that stay in caches between processes; on a network more must be under way between two
  // looks at it, since whoever looks shares the processors with computation.
  const bool network = near_members < members.size() || !settings_.shared_memory || !rings_work_;
  const size_t piece_bytes = network ? size_t{1} << 20 : size_t{64} << 10;
  // All ranks of a host agree on the number; the whole stays small when there are many of them.
  const size_t slots =
      network ? 2 : std::clamp<size_t>(16 / std::max<size_t>(1, near_members), 2, 8);
  std::vector<SharedMemory> files;
  if (settings_.shared_memory && rings_work_) {
    files = share_rings(members, slots, piece_bytes);
    if (files.empty()) rings_work_ = false;
  }
  GroupLinks links;
  for (size_t m = 0; m < members.size(); ++m) {
    std::vector<std::unique_ptr<Link>>* lists[lanes] = {&links.collective, &links.sending,
                                                        &links.receiving};
    for (int lane = 0; lane < lanes; ++lane) {
      const int in_lane = lane == forth ? back : lane == back ? forth : collectives;
      if (m == mine) {
        lists[lane]->push_back(nullptr);
      } else if (!files.empty() && near(members[m])) {
        const auto ring = [&](size_t owner, int to, int which) -> SharedRing& {
          const size_t place = place_in(members, members[owner], to) + static_cast<size_t>(which);
          return *reinterpret_cast<SharedRing*>(files[owner].data() +
                                                place * SharedRing::bytes(slots, piece_bytes));
        };
        lists[lane]->push_back(std::make_unique<SharedRingLink>(
            ring(mine, members[m], lane), ring(m, rank_, in_lane), slots, piece_bytes));
      } else {
        const int tag = id * lanes;
        lists[lane]->push_back(
            std::make_unique<MpiLink>(mutex_, members[m], tag + lane, tag + in_lane, piece_bytes));
      }
    }
  }
  for (SharedMemory& file : files) mapped_.push_back(std::move(file));
  const GroupSettings group{settings_.timeout_seconds,
                            ranks_per_host(members),
                            piece_bytes,
                            [mesh = settings_.mesh, members](int member) {
                              return place_of(mesh, members[static_cast<size_t>(member)]);
                            },
                            {}};
  return std::make_unique<LinkGroup>(static_cast<int>(mine), std::move(links), group);
}

void MpiWorld::abort(const std::string&, int exit_code) {
  tell_starter(exit_code);
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

std::string MpiWorld::host() const {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
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

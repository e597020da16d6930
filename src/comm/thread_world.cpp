#include "comm/thread_world.h"

#include <map>
#include <mutex>
#include <thread>

#include "comm/group.h"
#include "comm/shared_memory.h"
#include "comm/shared_ring.h"

namespace rankine {
namespace {

constexpr size_t slots = 4, piece_bytes = size_t{64} << 10;

// What all thread ranks share: rings by group, pair and lane, and the first failure.
struct Shared {
  std::mutex mutex;
  std::map<std::tuple<int, int, int, int>, SharedMemory> rings;
  std::string failure;

  SharedRing& ring(int group, int from, int to, int lane) {
    const std::lock_guard lock(mutex);
    SharedMemory& found = rings[{group, from, to, lane}];
    if (found.data() == nullptr)
      found = SharedMemory::of_threads(SharedRing::bytes(slots, piece_bytes));
    require(found.data() != nullptr, ErrorKind::resource, "no memory for rings between threads");
    return *reinterpret_cast<SharedRing*>(found.data());
  }
  std::string interruption() {
    const std::lock_guard lock(mutex);
    return failure;
  }
};

class ThreadWorld final : public World {
 public:
  ThreadWorld(int rank, int size, int ranks_per_host, const WorldSettings& settings,
              std::shared_ptr<Shared> shared)
      : rank_(rank),
        size_(size),
        ranks_per_host_(ranks_per_host),
        settings_(settings),
        shared_(std::move(shared)) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<Communicator> group(const std::vector<int>& members) override {
    GroupLinks links;
    const int id = groups_++;
    int mine = -1;
    enum Lane { collectives, forth, back };
    for (size_t i = 0; i < members.size(); ++i) {
      const int peer = members[i];
      if (peer == rank_) {
        mine = static_cast<int>(i);
        for (auto* lane : {&links.collective, &links.sending, &links.receiving})
          lane->push_back(nullptr);
        continue;
      }
      const auto link = [&](int out, int in) {
        return std::make_unique<SharedRingLink>(shared_->ring(id, rank_, peer, out),
                                                shared_->ring(id, peer, rank_, in), slots,
                                                piece_bytes);
      };
      links.collective.push_back(link(collectives, collectives));
      links.sending.push_back(link(forth, back));
      links.receiving.push_back(link(back, forth));
    }
    expect(mine >= 0, "a group has the calling rank in it");
    GroupSettings group{settings_.timeout_seconds,
                        static_cast<int>(members.size()) == size_ ? ranks_per_host_ : 1,
                        piece_bytes,
                        [mesh = settings_.mesh, members](int member) {
                          return place_of(mesh, members[static_cast<size_t>(member)]);
                        },
                        [shared = shared_] { return shared->interruption(); }};
    return std::make_unique<LinkGroup>(mine, std::move(links), std::move(group));
  }
  void abort(const std::string& why, int) override {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->failure.empty()) shared_->failure = why;
  }
  std::string host() const override { return "thread"; }
  std::string description() const override { return fmt::format("{} threads", size_); }

 private:
  int rank_, size_, ranks_per_host_, groups_ = 0;
  WorldSettings settings_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace

void run_ranks_as_threads(int ranks, const WorldSettings& settings,
                          const std::function<void(World&)>& body, int ranks_per_host) {
  const auto shared = std::make_shared<Shared>();
  std::exception_ptr first;
  std::mutex mutex;
  const auto keep_first = [&](const std::string& why) {
    {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
    const std::lock_guard lock(shared->mutex);
    if (shared->failure.empty()) shared->failure = why;
  };
  std::vector<std::thread> threads;
  const auto run = [&](int rank) {
    ThreadWorld world(rank, ranks, ranks_per_host, settings, shared);
    try {
      body(world);
    } catch (const std::exception& e) {
      keep_first(fmt::format("{} failed: {}", place_of(settings.mesh, rank), e.what()));
    }
  };
  try {
    for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run, rank);
  } catch (const std::exception& e) {  // those that run wait for the others in vain
    keep_first(fmt::format("rank {} of {} cannot be started: {}", threads.size(), ranks, e.what()));
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace rankine

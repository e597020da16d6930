#include "comm/local_world.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "comm/group.h"
#include "comm/local_board.h"
#include "comm/silence_clock.h"

namespace rankine {
namespace {

class LocalWorld final : public World {
 public:
  LocalWorld(const Launched& launched, const WorldSettings& settings)
      : rank_(launched.rank),
        settings_(settings),
        board_(std::make_shared<LocalBoard>(LocalBoard::join(launched.board, launched.ranks))) {
    keep_freed_memory();
    board_->reach(rank_, LocalBoard::Stage::connecting);
  }
  int rank() const override { return rank_; }
  int size() const override { return board_->ranks(); }
  std::unique_ptr<Communicator> group(const std::vector<int>& members) override;
  bool speaks() override;
  void abort(const std::string& why, int exit_code) override {
    board_->fail(fmt::format("{} failed: {}", place_of(settings_.mesh, rank_), why), exit_code);
  }
  std::string host() const override { return host_name(); }
  std::string description() const override {
    return fmt::format("{} processes on 1 host, shared memory within a host", size());
  }

 private:
  template <class Ready>
  void await(int peer, const char* doing, const Ready& ready) const;
  [[noreturn]] void report_unreachable() const;

  int rank_;
  size_t groups_ = 0;
  WorldSettings settings_;
  std::shared_ptr<LocalBoard> board_;  // also of the groups
  std::vector<SharedMemory> mapped_;
};

template <class Ready>
void LocalWorld::await(int peer, const char* doing, const Ready& ready) const {
  SilenceClock silence(settings_.timeout_seconds);
  for (int round = 0; !ready(); ++round) {
    usleep(round < 100 ? 100 : 2000);
    if (const std::string why = board_->failure(); !why.empty())
      throw Error(ErrorKind::environment, why);
    require(!silence.lasts_too_long(), ErrorKind::environment,
            "{} waits while {} for {}, which has {} for {:g} s; it is stopped, cut off or stuck "
            "(--comm-timeout sets the limit)",
            place_of(settings_.mesh, rank_), doing, place_of(settings_.mesh, peer),
            board_->stage(peer) == LocalBoard::Stage::absent ? "not begun" : "sent nothing",
            settings_.timeout_seconds);
  }
}

std::unique_ptr<Communicator> LocalWorld::group(const std::vector<int>& members) {
  const size_t id = groups_++;
  const auto mine = static_cast<size_t>(std::ranges::find(members, rank_) - members.begin());
  expect(mine < members.size(), "a group has the calling rank in it");
  // The first group is of all ranks. The world is there by then, so that one rank alone reports.
  const char* const doing = id == 0 ? "connecting" : "making groups of ranks";
  HostRings rings(std::vector(members.size(), true), mine, rings_of_one_host(members.size()));
  board_->tell(rank_, id, rings.make());
  std::vector<RingFile> files;
  for (const int member : members) {
    await(member, doing, [&] { return board_->knows(member, id); });
    files.push_back(board_->file(member, id));
  }
  if (!rings.open(files)) report_unreachable();
  board_->mapped(rank_, id);
  // A file can be reached as long as its process lives.
  for (const int member : members)
    await(member, doing, [&] { return board_->has_mapped(member, id); });
  board_->reach(rank_, LocalBoard::Stage::running);
  GroupLinks links;
  for (size_t m = 0; m < members.size(); ++m) rings.add_links(m, links);
  for (SharedMemory& file : rings.take_memory()) mapped_.push_back(std::move(file));
  GroupSettings group{
      .timeout_seconds = settings_.timeout_seconds,
      .piece_bytes = rings_of_one_host(members.size()).piece_bytes,
      .place = [mesh = settings_.mesh, members](
                   int member) { return place_of(mesh, members[static_cast<size_t>(member)]); },
      .interruption = [board = board_] { return board->failure(); },
      .waits =
          [board = board_, rank = rank_, members](int member, WaitMoment moment) {
            const int peer = members[static_cast<size_t>(member)];
            switch (moment) {
              case WaitMoment::begins:
                return board->begin_wait(rank, peer);
              case WaitMoment::goes_on:
                return board->go_on_waiting(rank);
              case WaitMoment::ends:
                return board->end_wait(rank, peer);
              case WaitMoment::given_up:
                return board->keep_waits(rank);
            }
          },
      .beyond =
          [board = board_, settings = settings_, members](int member) {
            std::string out;
            // A rank that waits says so all the time, many times in this one.
            const double silent = settings.timeout_seconds / 2;
            for (const int rank :
                 board->waiting_beyond(members[static_cast<size_t>(member)], silent))
              out += fmt::format(", which waits for {}", place_of(settings.mesh, rank));
            return out;
          }};
  return std::make_unique<LinkGroup>(static_cast<int>(mine), std::move(links), std::move(group));
}

// The memory of a rank that has just died cannot be reached either, and then its end is the
// failure.
void LocalWorld::report_unreachable() const {
  const int code = errno;
  for (int i = 0; i < 100; ++i, usleep(10'000))
    if (const std::string why = board_->failure(); !why.empty())
      throw Error(ErrorKind::environment, why);
  fail(ErrorKind::environment,
       "{} cannot share memory with the other ranks through memfd_create and /proc/PID/fd: {}; "
       "start them with mpirun and --no-shared-memory",
       place_of(settings_.mesh, rank_), std::strerror(code));
}

bool LocalWorld::speaks() {
  for (int i = 0; i < 200 && rank_ != 0 && !board_->report_claimed(); ++i) usleep(10'000);
  return board_->claim_report();
}

}  // namespace

std::unique_ptr<World> make_local_world(const Launched& launched, const WorldSettings& settings) {
  return std::make_unique<LocalWorld>(launched, settings);
}

}  // namespace rankine

#include "comm/local_board.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace rankine {
namespace {

constexpr size_t most_groups = 4096;           // that a rank makes in its life
constexpr uint64_t mark = 0x72616e6b696e6562;  // "rankineb"

double now() {
  const auto since_start = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since_start).count();
}

}  // namespace

struct LocalBoard::Header {
  std::atomic<uint64_t> mark;
  std::atomic<uint32_t> claimed, failed;  // failed: 1 while it is written, then 2
  std::atomic<int32_t> exit_code;
  std::array<char, 1024> why;
};

struct alignas(64) LocalBoard::Cell {
  std::atomic<uint32_t> stage;
  std::atomic<uint32_t> told, mapped;  // groups so far
  std::atomic<double> waited_at;       // when it last said that it waits, by this host's clock
  std::array<RingFile, most_groups> files;
};

size_t LocalBoard::bytes(int ranks) {
  const auto n = static_cast<size_t>(ranks);
  return sizeof(Cell) * (n + 1) + sizeof(std::atomic<int32_t>) * n * n;
}

LocalBoard::Header& LocalBoard::header() const {
  static_assert(sizeof(Header) <= sizeof(Cell));
  return *reinterpret_cast<Header*>(memory_.data());
}

LocalBoard::Cell& LocalBoard::cell(int rank) const {
  expect(0 <= rank && rank < ranks_, "a rank of the board");
  return reinterpret_cast<Cell*>(memory_.data())[rank + 1];
}

LocalBoard LocalBoard::create(int ranks) {
  LocalBoard board(SharedMemory::create(bytes(ranks)), ranks);
  require(board.memory_.data() != nullptr, ErrorKind::resource,
          "cannot make memory that ranks share: {}", std::strerror(errno));
  board.header().mark = mark;
  return board;
}

LocalBoard LocalBoard::join(int descriptor, int ranks) {
  LocalBoard board(SharedMemory::inherited(descriptor, bytes(ranks)), ranks);
  require(board.memory_.data() != nullptr && board.header().mark == mark, ErrorKind::environment,
          "RANKINE_BOARD={} is not the memory of a job that --ranks started; unset RANKINE_RANK, "
          "RANKINE_RANKS and RANKINE_BOARD",
          descriptor);
  return board;
}

void LocalBoard::reach(int rank, Stage stage) {
  cell(rank).stage = static_cast<uint32_t>(stage);
}

LocalBoard::Stage LocalBoard::stage(int rank) const {
  return static_cast<Stage>(cell(rank).stage.load());
}

void LocalBoard::tell(int rank, size_t group, RingFile file) {
  require(group < most_groups, ErrorKind::internal, "more than {} groups of ranks", most_groups);
  cell(rank).files[group] = file;
  cell(rank).told = static_cast<uint32_t>(group + 1);
}

bool LocalBoard::knows(int rank, size_t group) const {
  return cell(rank).told > group;
}

RingFile LocalBoard::file(int rank, size_t group) const {
  return cell(rank).files[group];
}

void LocalBoard::mapped(int rank, size_t group) {
  cell(rank).mapped = static_cast<uint32_t>(group + 1);
}

bool LocalBoard::has_mapped(int rank, size_t group) const {
  return cell(rank).mapped > group;
}

std::atomic<int32_t>& LocalBoard::waits(int rank, int peer) const {
  expect(0 <= rank && rank < ranks_ && 0 <= peer && peer < ranks_, "ranks of the board");
  auto* const counts =
      reinterpret_cast<std::atomic<int32_t>*>(reinterpret_cast<Cell*>(memory_.data()) + ranks_ + 1);
  return counts[static_cast<ptrdiff_t>(rank) * ranks_ + peer];
}

void LocalBoard::begin_wait(int rank, int peer) {
  go_on_waiting(rank);
  ++waits(rank, peer);
}

void LocalBoard::go_on_waiting(int rank) {
  cell(rank).waited_at = now();
}

void LocalBoard::keep_waits(int rank) {
  cell(rank).waited_at = std::numeric_limits<double>::infinity();
}

void LocalBoard::end_wait(int rank, int peer) {
  --waits(rank, peer);
}

bool LocalBoard::is_waiting(int rank, double silent_seconds) const {
  if (now() - cell(rank).waited_at > silent_seconds) return false;
  for (int peer = 0; peer < ranks_; ++peer)
    if (waits(rank, peer) > 0) return true;
  return false;
}

std::vector<int> LocalBoard::waiting_beyond(int rank, double silent_seconds) const {
  std::vector<int> from(static_cast<size_t>(ranks_), -1);  // the rank that led here
  const auto came_from = [&](int r) -> int& { return from[static_cast<size_t>(r)]; };
  std::vector<int> reached{rank};
  came_from(rank) = rank;
  for (size_t next = 0; next < reached.size(); ++next) {
    const int waiter = reached[next];
    if (!is_waiting(waiter, silent_seconds)) {
      std::vector<int> way;
      for (int r = waiter; r != rank; r = came_from(r)) way.insert(way.begin(), r);
      return way;
    }
    for (int peer = 0; peer < ranks_; ++peer) {
      if (waits(waiter, peer) == 0 || came_from(peer) >= 0) continue;
      came_from(peer) = waiter;
      reached.push_back(peer);
    }
  }
  return {};
}

bool LocalBoard::claim_report() {
  return header().claimed.exchange(1) == 0;
}

bool LocalBoard::report_claimed() const {
  return header().claimed != 0;
}

void LocalBoard::fail(const std::string& why, int exit_code) {
  Header& h = header();
  uint32_t none = 0;
  if (!h.failed.compare_exchange_strong(none, 1)) return;
  const size_t count = std::min(why.size(), h.why.size() - 1);
  std::memcpy(h.why.data(), why.data(), count);
  h.exit_code = exit_code;
  h.failed = 2;
}

std::string LocalBoard::failure() const {
  return header().failed == 2 ? std::string(header().why.data()) : std::string();
}

int LocalBoard::exit_code() const {
  return header().failed == 2 ? header().exit_code.load() : 0;
}

}  // namespace rankine

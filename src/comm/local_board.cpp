#include "comm/local_board.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace rankine {
namespace {

constexpr size_t most_groups = 4096;           // that a rank makes in its life
constexpr uint64_t mark = 0x72616e6b696e6562;  // "rankineb"

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
  std::atomic<int32_t> waits_for;      // a rank + 1, 0: none
  std::array<RingFile, most_groups> files;
};

size_t LocalBoard::bytes(int ranks) {
  return sizeof(Cell) * static_cast<size_t>(ranks + 1);
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

void LocalBoard::waits_for(int rank, int peer) {
  cell(rank).waits_for = peer + 1;
}

std::vector<int> LocalBoard::waiting_beyond(int rank) const {
  std::vector<int> out;
  for (int next = cell(rank).waits_for - 1; next >= 0; next = cell(next).waits_for - 1) {
    if (next == rank || std::ranges::count(out, next) > 0) return {};
    out.push_back(next);
  }
  return out;
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

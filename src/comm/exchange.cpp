#include "comm/exchange.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "comm/silence_clock.h"

namespace rankine {
namespace {

// The tree's split: the largest power of two below `count` goes left, so that the tree over ranks
// fits onto trees over micro-batches.
int left_part(int count) {
  int left = 1;
  while (2 * left < count) left *= 2;
  return left;
}

// Microseconds to sleep while nobody waits: what a peer has not even begun can take long, and each
// look takes the processor from what computes on it.
useconds_t nap_after(int naps) {
  return naps < 32 ? 60 : naps < 64 ? 250 : 1000;
}

// Takes back at its end what it has told.
class WaitNotice {
 public:
  WaitNotice(const GroupSettings& settings, int peer) : settings_(settings), peer_(peer) {}
  WaitNotice(const WaitNotice&) = delete;
  WaitNotice& operator=(const WaitNotice&) = delete;
  ~WaitNotice() {
    if (given_ && !kept_) tell(WaitMoment::ends);
  }
  void give() {
    tell(given_ ? WaitMoment::goes_on : WaitMoment::begins);
    given_ = true;
  }
  // Whoever gives up after this rank is to see whom it waited for.
  void keep() {
    tell(WaitMoment::given_up);
    kept_ = true;
  }

 private:
  void tell(WaitMoment moment) const {
    if (settings_.waits) settings_.waits(peer_, moment);
  }

  const GroupSettings& settings_;
  int peer_;
  bool given_ = false, kept_ = false;
};

}  // namespace

void LinkGroup::Exchange::drive_sends() {
  std::erase_if(sending_, [&](const Message& m) { return link_to(m.peer).sent(); });
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    // Messages to one peer keep their order: the first that waits is the first that goes.
    const auto busy = [&](const Message& m) { return m.peer == next->peer; };
    if (std::ranges::any_of(sending_, busy)) {
      ++next;
      continue;
    }
    link_to(next->peer).start_send(next->data, static_cast<size_t>(next->bytes));
    if (!link_to(next->peer).sent()) sending_.push_back(*next);
    next = waiting_.erase(next);
  }
}

// Polls, then yields, then sleeps: ranks may share processors with those they wait for.
template <class Ready>
void LinkGroup::Exchange::wait_until(Ready&& ready, int peer) {
  SilenceClock silence(group_.settings_.timeout_seconds);
  WaitNotice notice(group_.settings_, peer);
  for (int round = 0;; ++round) {
    require(!watch_.given_up, ErrorKind::environment, "{} #{} '{}' was given up", call_.name,
            call_.header.sequence, call_.header.tag);
    drive_sends();
    if (ready()) return;
    const bool urgent = watch_.waiting > 0;
    const int polls = urgent ? 200 : 10, yields = urgent ? 400 : 10;
    if (round < polls) {
      __builtin_ia32_pause();
      continue;
    }
    if (round < yields)
      sched_yield();
    else
      usleep(urgent ? 30 : nap_after(round - yields));
    if (round % 64 != 0) continue;
    if (urgent) notice.give();
    if (group_.settings_.interruption)
      if (const std::string why = group_.settings_.interruption(); !why.empty())
        throw Error(ErrorKind::environment, why);
    if (!silence.lasts_too_long()) continue;
    notice.give();
    notice.keep();
    report_silence(peer);
  }
}

LinkGroup::Exchange::~Exchange() {
  if (finished_) return;
  for (const std::unique_ptr<Link>& link : links_)
    if (link) link->give_up();
}

void LinkGroup::Exchange::finish() {
  while (!waiting_.empty() || !sending_.empty()) {
    const int peer = sending_.empty() ? waiting_.front().peer : sending_.front().peer;
    wait_until([&] { return waiting_.empty() && sending_.empty(); }, peer);
  }
  finished_ = true;
}

void LinkGroup::Exchange::report_silence(int peer) const {
  fail(ErrorKind::environment,
       "{} waits in {} #{} '{}' ({} bytes) for {}{}, which has sent nothing for {:g} s; it is "
       "stopped, cut off or stuck (--comm-timeout sets the limit)",
       group_.settings_.place(group_.rank_), call_.name, call_.header.sequence, call_.header.tag,
       call_.header.bytes, group_.settings_.place(peer),
       group_.settings_.beyond ? group_.settings_.beyond(peer) : "",
       group_.settings_.timeout_seconds);
}

void LinkGroup::Exchange::compare(const OperationHeader& theirs, int peer) const {
  const OperationHeader& mine = call_.header;
  if (theirs.sequence == mine.sequence && theirs.kind == mine.kind && theirs.bytes == mine.bytes &&
      theirs.dtype == mine.dtype && std::strncmp(theirs.tag, mine.tag, sizeof mine.tag) == 0)
    return;
  const auto text = [&](const OperationHeader& h) {
    return fmt::format("{} #{} '{}' ({} bytes)",
                       h.kind < operation_names.size() ? operation_names[h.kind] : "?", h.sequence,
                       std::string_view(h.tag, strnlen(h.tag, sizeof h.tag)), h.bytes);
  };
  fail(ErrorKind::internal, "operations differ: {} is in {}, {} is in {}",
       group_.settings_.place(group_.rank_), text(mine), group_.settings_.place(peer),
       text(theirs));
}

void LinkGroup::Exchange::send(int peer, const void* data, int64_t bytes) {
  if (bytes == 0) return;
  waiting_.push_back({peer, data, bytes});
  drive_sends();
}

const std::byte* LinkGroup::Exchange::wait_piece(int peer) {
  const std::byte* piece = nullptr;
  wait_until([&] { return (piece = link_to(peer).arrived()) != nullptr; }, peer);
  return piece;
}

void LinkGroup::Exchange::wait_sent(int peer, const void* data) {
  const auto is_it = [&](const Message& m) { return m.peer == peer && m.data == data; };
  wait_until(
      [&] {
        return std::ranges::none_of(waiting_, is_it) && std::ranges::none_of(sending_, is_it);
      },
      peer);
}

void LinkGroup::Exchange::receive(int peer, void* to, int64_t bytes) {
  if (bytes == 0) return;
  Link& link = link_to(peer);
  link.expect_message(static_cast<size_t>(bytes));
  for (int64_t done = 0; done < bytes;) {
    const auto count = std::min(bytes - done, static_cast<int64_t>(group_.settings_.piece_bytes));
    const std::byte* piece = wait_piece(peer);
    if (static_cast<size_t>(bytes) >= group_.settings_.piece_bytes)
      copy_past_caches(static_cast<char*>(to) + done, piece, static_cast<size_t>(count));
    else
      std::memcpy(static_cast<char*>(to) + done, piece, static_cast<size_t>(count));
    link.consume();
    done += count;
  }
}

void LinkGroup::Exchange::announce(int peer) {
  send(peer, &call_.header, sizeof call_.header);
}

void LinkGroup::Exchange::hear(int peer) {
  receive(peer, &heard_, sizeof heard_);
  compare(heard_, peer);
}

void LinkGroup::Exchange::agree() {
  for (int step = 1; step < group_.size_; ++step) announce((group_.rank_ + step) % group_.size_);
  for (int step = 1; step < group_.size_; ++step)
    hear((group_.rank_ + group_.size_ - step) % group_.size_);
}

// The sum over ranks [low, high) of one piece: where it already is, or in the buffer of `level`.
const void* LinkGroup::Exchange::reduce_range(const Part& part, int low, int high, size_t level) {
  const Combine& c = *part.combine;
  std::byte* buffer =
      level == 0 ? part.first_buffer : group_.scratch_.data() + level * level_bytes();
  const auto rank_of = [&](int number) { return part.first + number * part.stride; };
  if (high - low == 1) {
    if (low == part.self && part.as_sent) return part.own;
    const int peer = rank_of(low);
    c.widen(low == part.self ? static_cast<const void*>(part.own) : wait_piece(peer), buffer,
            part.count);
    if (low != part.self) link_to(peer).consume();
    return buffer;
  }
  const int middle = low + left_part(high - low);
  const bool left_leaf = middle - low == 1 && low != part.self;
  const bool right_leaf = high - middle == 1 && middle != part.self;
  // a + b = b + a bit for bit, so that a peer's piece can always be the right operand.
  if (left_leaf || right_leaf) {
    const int peer = rank_of(right_leaf ? middle : low);
    const void* rest = right_leaf ? reduce_range(part, low, middle, level)
                                  : reduce_range(part, middle, high, level);
    c.fold_wire(rest, wait_piece(peer), buffer, part.count);
    link_to(peer).consume();
    return buffer;
  }
  const void* left = reduce_range(part, low, middle, level);
  const void* right = reduce_range(part, middle, high, level + 1);
  c.fold(left, right, buffer, part.count);
  return buffer;
}

void LinkGroup::Exchange::make_room(const Combine& combine) {
  size_t levels = 2;
  for (int ranks = 1; ranks < group_.size_; ranks *= 2) ++levels;
  const size_t bytes = levels * level_bytes();
  expect(dtype_bytes(combine.sum) <= 8, "sums fit their levels");
  if (group_.scratch_.size() < bytes) group_.scratch_.resize(bytes);
}

void LinkGroup::Exchange::reduce_piece(const void* own, void* out, int64_t count,
                                       const Combine& combine, DType dtype) {
  if (group_.size_ == 2) {
    const int peer = 1 - group_.rank_;
    combine.fold_pair(own, wait_piece(peer), out, out, count);
    link_to(peer).consume();
    return;
  }
  const bool as_sent = combine.sum == dtype;
  // A partial sum could overwrite this rank's own part before its turn.
  const bool straight = as_sent && own != out;
  const Part part{static_cast<const char*>(own),
                  count,
                  &combine,
                  as_sent,
                  straight ? static_cast<std::byte*>(out) : group_.scratch_.data(),
                  0,
                  1,
                  group_.rank_};
  const void* sum = reduce_range(part, 0, group_.size_, 0);
  if (!as_sent)
    combine.narrow(sum, out, count);
  else if (sum != out)
    std::memcpy(out, sum, static_cast<size_t>(count * dtype_bytes(dtype)));
}

void LinkGroup::Exchange::reduce(const void* own, void* out, int64_t count, DType dtype,
                                 Reduction reduction) {
  if (count == 0) return;
  const Combine& combine = combine_of(dtype, reduction);
  make_room(combine);
  const int64_t size = dtype_bytes(dtype);
  const int64_t per_piece = static_cast<int64_t>(group_.settings_.piece_bytes) / size;
  for (int peer = 0; peer < group_.size_; ++peer)
    if (peer != group_.rank_) link_to(peer).expect_message(static_cast<size_t>(count * size));
  for (int64_t done = 0; done < count; done += per_piece)
    reduce_piece(static_cast<const char*>(own) + done * size, static_cast<char*>(out) + done * size,
                 std::min(per_piece, count - done), combine, dtype);
}

// With one peer the sum goes into memory and on its way in one pass, as long as nothing waits to be
// sent before it.
void LinkGroup::Exchange::reduce_and_send(const Parts::Piece& mine, int64_t bytes,
                                          const Combine& combine) {
  const int peer = 1 - group_.rank_;
  Link& link = link_to(peer);
  const std::byte* theirs = wait_piece(peer);
  std::byte* room = waiting_.empty() && sending_.empty() ? link.room() : nullptr;
  combine.fold_pair(mine.data, theirs, mine.data,
                    room != nullptr ? static_cast<void*>(room) : mine.data, mine.count);
  link.consume();
  if (room != nullptr)
    link.publish();
  else
    send(peer, mine.data, bytes);
}

// Everyone's part of x is reduced by its owner and collected again, piece by piece: pieces to be
// reduced go `ahead` of the finished ones, so that all work on fresh memory at the same time.
void LinkGroup::Exchange::reduce_and_collect(const Tensor& x, Reduction reduction) {
  constexpr int64_t ahead = 3;
  const Combine& combine = combine_of(x.dtype, reduction);
  make_room(combine);
  const int size = group_.size_, rank = group_.rank_;
  const Parts parts(x, size);
  const int64_t most = static_cast<int64_t>(group_.settings_.piece_bytes) / parts.width;
  const auto send_piece = [&](int peer, const Parts::Piece& p) {
    send(peer, p.data, p.count * parts.width);
  };
  for (int64_t k = -ahead; k < (parts.part + most - 1) / most + ahead; ++k) {
    for (int step = 1; step < size && k >= ahead; ++step) {
      const int peer = (rank + size - step) % size;
      const Parts::Piece finished = parts.piece(peer, k - ahead, most);
      receive(peer, finished.data, finished.count * parts.width);
    }
    const Parts::Piece mine = k >= 0 ? parts.piece(rank, k, most) : Parts::Piece{nullptr, 0};
    if (mine.count > 0) {
      for (int peer = 0; peer < size; ++peer)
        if (peer != rank)
          link_to(peer).expect_message(static_cast<size_t>(mine.count * parts.width));
      if (size == 2)
        reduce_and_send(mine, mine.count * parts.width, combine);
      else
        reduce_piece(mine.data, mine.data, mine.count, combine, x.dtype);
    }
    for (int step = 1; step < size; ++step) {
      const int peer = (rank + step) % size;
      if (mine.count > 0 && size > 2) send_piece(peer, mine);
      if (const auto next = parts.piece(peer, k + ahead, most); next.count > 0)
        send_piece(peer, next);
    }
  }
}

}  // namespace rankine

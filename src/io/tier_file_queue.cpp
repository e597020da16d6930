#include "io/tier_file_queue.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.h"

namespace rankine {
namespace {

constexpr uint64_t piece_bytes = uint64_t{4} << 20;
constexpr int most_fruitless = 1000;

}  // namespace

bool TierRequest::done() {
  const std::lock_guard lock(mutex_);
  return done_;
}

TierUse TierCounter::use() const {
  return {bytes_read_, bytes_written_, std::chrono::duration<double>(waited_.load()).count()};
}

void TierRequest::wait() {
  std::unique_lock lock(mutex_);
  if (!done_) {
    const auto start = std::chrono::steady_clock::now();
    changed_.wait(lock, [&] { return done_; });
    // Only that one thread writes it.
    if (std::this_thread::get_id() == counter_->owner_)
      counter_->waited_ = counter_->waited_.load() + (std::chrono::steady_clock::now() - start);
  }
  if (failure_) std::rethrow_exception(failure_);
}

void TierRequest::end() noexcept {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_; });
}

void TierRequest::finish() {
  const std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

TierQueue::TierQueue(std::unique_ptr<TierEngine> engine, std::filesystem::path path)
    : engine_(std::move(engine)),
      path_(std::move(path)),
      slots_(static_cast<size_t>(engine_->depth())),
      thread_([this] { run(); }) {}

TierQueue::~TierQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  engine_->wake();
  thread_.join();
}

std::shared_ptr<TierRequest> TierQueue::start(const TierPiece& whole) {
  auto request = std::make_shared<TierRequest>(counter_);
  (whole.write ? counter_->bytes_written_ : counter_->bytes_read_) += whole.bytes;
  {
    const std::lock_guard lock(mutex_);
    if (broken_) {
      request->failure_ = broken_;
      request->finish();
      return request;
    }
    request->rest_ = whole;
    waiting_.push_back(request);
  }
  engine_->wake();
  return request;
}

void TierQueue::run() {
  try {
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        fill();
        if (stopping_ && used_slots_ == 0) return;
      }
      const TierEngine::Event event = engine_->next();
      if (event.piece == nullptr) continue;
      const std::lock_guard lock(mutex_);
      settle(event);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    abandon(std::current_exception());
  }
}

// Hands out pieces, first come first served, as long as there are free slots.
void TierQueue::fill() {
  for (Slot& slot : slots_) {
    if (waiting_.empty()) return;
    if (slot.request) continue;
    TierRequest& request = *waiting_.front();
    TierPiece& rest = request.rest_;
    slot = {rest, waiting_.front(), 0};
    slot.piece.bytes = std::min(rest.bytes, piece_bytes);
    rest.offset += slot.piece.bytes;
    rest.memory += slot.piece.bytes;
    rest.bytes -= slot.piece.bytes;
    ++request.pieces_under_way_;
    ++used_slots_;
    if (rest.bytes == 0) waiting_.pop_front();
    engine_->start(slot.piece);
  }
}

void TierQueue::settle(const TierEngine::Event& event) {
  const auto found = std::find_if(slots_.begin(), slots_.end(),
                                  [&](const Slot& slot) { return &slot.piece == event.piece; });
  expect(found != slots_.end() && found->request, "an event is of a piece under way");
  Slot& slot = *found;
  TierPiece& piece = slot.piece;
  const bool interrupted = event.result == -EINTR || event.result == -EAGAIN;
  slot.fruitless = interrupted ? slot.fruitless + 1 : 0;
  if (event.result > 0) {
    const uint64_t moved = std::min(piece.bytes, static_cast<uint64_t>(event.result));
    piece.offset += moved;
    piece.memory += moved;
    piece.bytes -= moved;
  } else if (!interrupted || slot.fruitless > most_fruitless) {
    drop_rest(slot.request, error_of(piece, event.result));
  }
  if (piece.bytes == 0 || slot.request->failure_)
    release(slot);
  else
    engine_->start(piece);
}

void TierQueue::release(Slot& slot) {
  const std::shared_ptr<TierRequest> request = std::move(slot.request);
  --used_slots_;
  --request->pieces_under_way_;
  if (request->pieces_under_way_ == 0 && request->rest_.bytes == 0) request->finish();
}

// The first failure is the one reported.
void TierQueue::drop_rest(const std::shared_ptr<TierRequest>& request, std::exception_ptr failure) {
  if (!request->failure_) request->failure_ = std::move(failure);
  if (request->rest_.bytes == 0) return;
  request->rest_.bytes = 0;
  std::erase(waiting_, request);
}

void TierQueue::abandon(const std::exception_ptr& failure) {
  broken_ = failure;
  for (Slot& slot : slots_)
    if (slot.request) {
      drop_rest(slot.request, failure);
      release(slot);
    }
  for (const std::shared_ptr<TierRequest>& request : std::exchange(waiting_, {})) {
    request->failure_ = failure;
    request->finish();
  }
}

std::exception_ptr TierQueue::error_of(const TierPiece& piece, int64_t result) const {
  const std::string place = fmt::format("'{}' at offset {}", path_.string(), piece.offset);
  if (result == 0)
    return std::make_exception_ptr(Error(
        ErrorKind::data,
        fmt::format("cannot {} {}: it moved no byte of {}{}", piece.write ? "write" : "read", place,
                    piece.bytes, piece.write ? "" : ", the file was cut by someone else")));
  const auto code = static_cast<int>(-result);
  const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  return std::make_exception_ptr(Error(
      full ? ErrorKind::resource : ErrorKind::environment,
      fmt::format("cannot {} {}: {}", piece.write ? "write" : "read", place, std::strerror(code))));
}

}  // namespace rankine

#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "io/tier_file_engine.h"

namespace rankine {
namespace {

constexpr int pieces = 16;

bool can_read_and_write(io_uring& ring) {
  io_uring_probe* const probe = io_uring_get_probe_ring(&ring);
  const bool can = probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_READ) != 0 &&
                   io_uring_opcode_supported(probe, IORING_OP_WRITE) != 0;
  if (probe != nullptr) io_uring_free_probe(probe);
  return can;
}

// An event counter in the ring ends its sleep.
class UringEngine : public TierEngine {
 public:
  UringEngine(int descriptor, bool direct) : descriptor_(descriptor), direct_(direct) {
    alarm_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (alarm_ < 0 || io_uring_queue_init(2 * pieces, &ring_, 0) != 0) return;
    has_ring_ = true;
    usable_ = can_read_and_write(ring_);
    if (usable_) watch_alarm();
  }
  UringEngine(const UringEngine&) = delete;
  UringEngine& operator=(const UringEngine&) = delete;
  ~UringEngine() override {
    if (has_ring_) io_uring_queue_exit(&ring_);
    if (alarm_ >= 0) ::close(alarm_);
  }

  bool usable() const { return usable_; }
  std::string_view name() const override { return "io_uring"; }
  int depth() const override { return pieces; }

  void start(TierPiece& piece) override {
    io_uring_sqe* const entry = new_entry();
    const auto bytes = static_cast<unsigned>(piece.bytes);
    if (piece.write)
      io_uring_prep_write(entry, descriptor_, piece.memory, bytes, piece.offset);
    else
      io_uring_prep_read(entry, descriptor_, piece.memory, bytes, piece.offset);
    io_uring_sqe_set_data(entry, &piece);
    // The page cache would be copied here and now, one piece after the other.
    if (!direct_) io_uring_sqe_set_flags(entry, IOSQE_ASYNC);
  }

  Event next() override {
    for (;;) {
      io_uring_cqe* entry = nullptr;
      if (io_uring_peek_cqe(&ring_, &entry) == 0 && entry != nullptr) return take(*entry);
      const int status = io_uring_submit_and_wait(&ring_, 1);
      if (status == -EAGAIN || status == -EBUSY)  // short of kernel memory for the moment
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      else
        require(status >= 0 || status == -EINTR, ErrorKind::environment, "io_uring failed: {}",
                std::strerror(-status));
    }
  }

  void wake() override {
    const uint64_t one = 1;
    // Fails only when the counter is full, and then it rings anyway.
    [[maybe_unused]] const ssize_t put = ::write(alarm_, &one, sizeof one);
  }

 private:
  io_uring_sqe* new_entry() {
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    expect(entry != nullptr, "the ring has room for all pieces and the alarm");
    return entry;
  }

  void watch_alarm() {
    io_uring_sqe* const entry = new_entry();
    io_uring_prep_poll_add(entry, alarm_, POLLIN);
    io_uring_sqe_set_data(entry, nullptr);
  }

  Event take(io_uring_cqe& entry) {
    const Event event{static_cast<TierPiece*>(io_uring_cqe_get_data(&entry)), entry.res};
    io_uring_cqe_seen(&ring_, &entry);
    if (event.piece != nullptr) return event;
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(alarm_, &count, sizeof count);
    watch_alarm();
    return {};
  }

  int descriptor_, alarm_ = -1;
  bool direct_, has_ring_ = false, usable_ = false;
  io_uring ring_{};
};

}  // namespace

std::unique_ptr<TierEngine> make_uring_engine(int descriptor, bool direct) {
  auto engine = std::make_unique<UringEngine>(descriptor, direct);
  if (!engine->usable()) return nullptr;
  return engine;
}

}  // namespace rankine

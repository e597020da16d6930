#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

// What moves pieces between memory and a tier for a TierQueue. All calls but wake() come from the
// queue's one thread.
namespace rankine {

struct TierPiece {
  bool write = false;
  uint64_t offset = 0;
  std::byte* memory = nullptr;
  uint64_t bytes = 0;
};

class TierEngine {
 public:
  struct Event {
    TierPiece* piece = nullptr;  // null: woken
    int64_t result = 0;          // bytes moved, maybe fewer than asked for, or -errno
  };
  virtual ~TierEngine() = default;
  virtual std::string_view name() const = 0;
  virtual int depth() const = 0;  // pieces that may be under way at once
  // The piece must stay where it is until its event.
  virtual void start(TierPiece& piece) = 0;
  // Sleeps until a piece has ended or wake() was called. Throws when the engine is of no use any
  // more.
  virtual Event next() = 0;
  virtual void wake() = 0;  // ends next(), now or the next time; from any thread
};

// Null where liburing is not built in or the system refuses it.
std::unique_ptr<TierEngine> make_uring_engine(int descriptor, bool direct);
// Some threads that read and write.
std::unique_ptr<TierEngine> make_thread_engine(int descriptor);
// One thread that copies from and to memory, in which offsets count from `begin`.
std::unique_ptr<TierEngine> make_memory_engine(std::byte* begin);

}  // namespace rankine

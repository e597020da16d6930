#include "io/tier_file_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <thread>

#include "support/errors.h"

namespace rankine {
namespace {

using test::error_of;

// A file in memory that does with each piece what `answer` says.
class ScriptedEngine : public TierEngine {
 public:
  using Answer = std::function<int64_t(const TierPiece&)>;
  ScriptedEngine(std::vector<std::byte>& file, Answer answer)
      : file_(file), answer_(std::move(answer)) {}

  std::string_view name() const override { return "scripted"; }
  int depth() const override { return 3; }
  void start(TierPiece& piece) override { started_.push_back(&piece); }
  Event next() override {
    std::unique_lock lock(mutex_);
    if (started_.empty()) {
      woken_came_.wait(lock, [&] { return woken_; });
      woken_ = false;
      return {};
    }
    // The last first: nothing may rest on the order.
    TierPiece& piece = *started_.back();
    started_.pop_back();
    const int64_t moved = answer_(piece);
    if (moved > 0) {
      const auto place = file_.begin() + static_cast<int64_t>(piece.offset);
      if (piece.write)
        std::copy_n(piece.memory, moved, place);
      else
        std::copy_n(place, moved, piece.memory);
    }
    return {&piece, moved};
  }
  void wake() override {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    woken_came_.notify_one();
  }

 private:
  std::vector<std::byte>& file_;
  Answer answer_;
  std::deque<TierPiece*> started_;
  std::mutex mutex_;
  std::condition_variable woken_came_;
  bool woken_ = false;
};

constexpr uint64_t file_bytes = uint64_t{36} << 20;

struct Bench {
  explicit Bench(ScriptedEngine::Answer answer)
      : queue(std::make_unique<ScriptedEngine>(file, std::move(answer)), "/disk/x.tier") {}
  std::shared_ptr<TierRequest> start(bool write, uint64_t offset = 0, uint64_t bytes = file_bytes) {
    return queue.start({write, offset, memory.data() + offset, bytes});
  }
  std::vector<std::byte> file = std::vector<std::byte>(file_bytes);
  std::vector<std::byte> memory = std::vector<std::byte>(file_bytes);
  TierQueue queue;
};

int64_t all_of(const TierPiece& piece) {
  return static_cast<int64_t>(piece.bytes);
}

TEST(TierQueue, ContinuesShortAndInterruptedPieces) {
  int calls = 0;
  Bench bench([&](const TierPiece& piece) -> int64_t {
    if (++calls % 3 == 0) return -EINTR;
    if (calls % 5 == 0) return -EAGAIN;
    return static_cast<int64_t>(std::min(piece.bytes, std::max<uint64_t>(4096, piece.bytes / 3)));
  });
  for (size_t i = 0; i < file_bytes; ++i) bench.memory[i] = static_cast<std::byte>(i * 7 >> 4);
  const std::vector<std::byte> written = bench.memory;
  bench.start(true)->wait();
  EXPECT_EQ(bench.file, written);
  std::fill(bench.memory.begin(), bench.memory.end(), std::byte{});
  bench.start(false)->wait();
  EXPECT_EQ(bench.memory, written);
}

TEST(TierQueue, AFailedPieceFailsItsRequestAloneWithItsOffset) {
  const uint64_t bad = uint64_t{5} << 20;
  Bench bench([&](const TierPiece& piece) {
    return piece.offset <= bad && bad < piece.offset + piece.bytes ? -EIO : all_of(piece);
  });
  const auto first = bench.start(true, 0, bad), second = bench.start(true, bad, file_bytes - bad),
             third = bench.start(true, bad + (uint64_t{1} << 20), 4096);
  first->wait();
  third->wait();
  const Error error = error_of([&] { second->wait(); });
  EXPECT_TRUE(second->done());
  EXPECT_EQ(error.kind(), ErrorKind::environment);
  EXPECT_STREQ(error.what(), "cannot write '/disk/x.tier' at offset 5242880: Input/output error");
}

TEST(TierQueue, CountsBytesAndTheWaitsOfItsOwner) {
  std::promise<void> answer;
  const std::shared_future<void> answered = answer.get_future().share();
  Bench bench([&](const TierPiece& piece) {
    if (!piece.write) answered.wait();
    return all_of(piece);
  });
  bench.start(true, 0, 8192)->wait();
  bench.start(true, 8192, 4096)->wait();
  const double before = bench.queue.use().exposed_seconds;
  const auto reading = bench.start(false, 0, 4096);
  // Another thread's waiting is hidden from the owner.
  std::thread other([&] { reading->wait(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(bench.queue.use().exposed_seconds, before);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    answer.set_value();
  });
  reading->wait();
  other.join();
  later.join();
  const TierUse use = bench.queue.use();
  EXPECT_EQ(use.bytes_written, 12288u);
  EXPECT_EQ(use.bytes_read, 4096u);
  EXPECT_GT(use.exposed_seconds, before);
}

TEST(TierQueue, LackOfSpaceIsAnErrorOfResources) {
  for (const int code : {ENOSPC, EDQUOT, EFBIG}) {
    Bench bench([&](const TierPiece&) { return -code; });
    const Error error = error_of([&] { bench.start(true)->wait(); });
    EXPECT_EQ(error.kind(), ErrorKind::resource);
    EXPECT_NE(std::string(error.what()).find(std::strerror(code)), std::string::npos);
  }
}

TEST(TierQueue, EndlessInterruptionsEnd) {
  Bench bench([](const TierPiece&) { return -EAGAIN; });
  EXPECT_EQ(error_of([&] { bench.start(false)->wait(); }).kind(), ErrorKind::environment);
}

TEST(TierQueue, AnEngineThatBreaksFailsAllRequestsAndHangsNobody) {
  int calls = 0;
  Bench bench([&](const TierPiece& piece) {
    if (++calls == 2) fail(ErrorKind::environment, "the ring is gone");
    return all_of(piece);
  });
  std::vector<std::shared_ptr<TierRequest>> requests;
  for (int i = 0; i < 4; ++i) requests.push_back(bench.start(true));
  for (const auto& request : requests)
    EXPECT_STREQ(error_of([&] { request->wait(); }).what(), "the ring is gone");
  EXPECT_STREQ(error_of([&] { bench.start(false)->wait(); }).what(), "the ring is gone");
}

TEST(TierQueue, TheDestructorWaitsForWhatIsUnderWay) {
  std::vector<std::byte> file(file_bytes), memory(file_bytes, std::byte{3});
  std::shared_ptr<TierRequest> request;
  {
    TierQueue queue(std::make_unique<ScriptedEngine>(file, all_of), "/disk/x.tier");
    request = queue.start({true, 0, memory.data(), file_bytes});
  }
  EXPECT_TRUE(request->done());
  EXPECT_EQ(file, memory);
}

}  // namespace
}  // namespace rankine

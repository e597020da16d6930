#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "comm/link.h"

// A Communicator over links between host memories. Collectives exchange directly: every rank sums
// its own part from everyone's pieces, in the order of one fixed tree.
namespace rankine {

enum class WaitMoment { begins, goes_on, ends, given_up };

struct GroupSettings {
  double timeout_seconds = 60;  // of one wait for a peer; 0: wait for ever
  // Above 1: the members lie on several hosts, so many on each, a power of two, neighbours in
  // order.
  int ranks_per_host = 1;
  size_t piece_bytes = size_t{64} << 10;  // of all links: small for caches, large for networks
  // "rank 5 (data 1)": how messages call a member of the group.
  std::function<std::string(int member)> place = {};
  // Thrown into waits when not empty: another rank's failure, known some other way.
  std::function<std::string()> interruption = {};
  // What a caller that has waited for a member for a while tells: that it does, now and then that
  // it still does, and at last that it has ended or that it gives up. And what is known from
  // others of whom that member waits for: ", which waits for rank 7".
  std::function<void(int member, WaitMoment)> waits = {};
  std::function<std::string(int member)> beyond = {};
};

// One ordered queue of operations. Whoever waits drives; a thread of its own drives when nobody
// waits.
class OperationQueue {
 public:
  // What an operation looks at while it runs.
  struct Watch {
    std::atomic<int> waiting{0};        // threads that wait for an operation of the queue
    std::atomic<bool> given_up{false};  // it is to throw at its next wait
  };
  using Run = std::function<void(const Watch&)>;

  OperationQueue();
  OperationQueue(const OperationQueue&) = delete;
  OperationQueue& operator=(const OperationQueue&) = delete;
  // Ends what runs, as Operation::end has it; what has not begun is done and failed.
  ~OperationQueue();
  Work start(Run run);
  double waited_seconds() const;  // by callers, so far

 private:
  class State;
  class Entry;
  const std::shared_ptr<State> state_;  // also of the handles, which may stay longer
  std::thread thread_;
};

enum OperationKind : uint32_t {
  kind_all_reduce,
  kind_reduce_scatter,
  kind_all_gather,
  kind_broadcast,
  kind_transfer,
  kind_barrier
};
inline constexpr std::array operation_names{"all_reduce", "reduce_scatter", "all_gather",
                                            "broadcast",  "transfer",       "barrier"};

// What every operation begins with, so that ranks notice when they are not in the same operation.
struct OperationHeader {
  uint64_t sequence = 0, bytes = 0;
  uint32_t kind = 0, dtype = 0;
  char tag[40] = {};
};

// The links of a group; null for this rank itself. Each pair has one for collectives and one for
// each direction of transfers.
struct GroupLinks {
  std::vector<std::unique_ptr<Link>> collective, sending, receiving;
};

class LinkGroup final : public Communicator {
 public:
  LinkGroup(int rank, GroupLinks links, GroupSettings settings);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Work all_reduce(Tensor x, Reduction reduction, std::string_view tag) override;
  Work reduce_scatter(const Tensor& in, Tensor out, std::string_view tag) override;
  Work all_gather(const Tensor& in, Tensor out, std::string_view tag) override;
  Work broadcast(Tensor x, int root, std::string_view tag) override;
  Work send(const Tensor& x, int peer, std::string_view tag) override;
  Work receive(Tensor x, int peer, std::string_view tag) override;
  Work barrier(std::string_view tag) override;
  void start_behind(Queue& queue) override { behind_ = &queue; }
  uint64_t bytes_sent() const override { return bytes_sent_; }
  double waited_seconds() const override;

 private:
  class Exchange;
  struct Call {
    OperationHeader header;
    const char* name;
  };
  Call call(OperationKind kind, const Tensor& x, int64_t bytes, std::string_view tag,
            uint64_t sequence);
  int64_t widened_bytes(int64_t part, DType dtype) const;
  void count(int64_t bytes) { bytes_sent_ += static_cast<uint64_t>(bytes); }
  void copy_in_order(void* to, const void* from, int64_t bytes) const;
  Work begin(OperationQueue& queue, OperationQueue::Run run) const;
  Work collective(const Call& call, std::function<void(Exchange&)> run);

  int rank_, size_;
  GroupLinks links_;
  GroupSettings settings_;
  Queue* behind_ = nullptr;  // whose work so far operations start behind
  std::vector<std::byte> scratch_;   // of reductions
  std::vector<std::byte> partials_;  // sums of this host on their way to others
  std::vector<std::byte> gathered_;  // of small all_reduces
  uint64_t bytes_sent_ = 0;
  uint64_t sequence_ = 0;
  std::vector<uint64_t> sends_, receives_;
  OperationQueue collectives_;
  std::vector<std::unique_ptr<OperationQueue>> send_queues_, receive_queues_;
};

}  // namespace rankine

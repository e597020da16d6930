#pragma once
#include <chrono>

#include "comm/combine.h"
#include "comm/group.h"

namespace rankine {

// One operation over a group's links: sends and receives whose waits drive each other, and the
// watchdog.
class LinkGroup::Exchange {
 public:
  Exchange(LinkGroup& group, const Call& call, const std::vector<std::unique_ptr<Link>>& links)
      : group_(group), call_(call), links_(links) {}

  // Sends the header to each of `peers` and compares theirs; Error{internal} when they differ.
  void agree();
  // As agree, but one way.
  void announce(int peer);
  void hear(int peer);

  // Queues a message; it goes out while this exchange waits for something.
  void send(int peer, const void* data, int64_t bytes);
  void finish_sends();
  // Gathers a message of this length from the peer into `to`.
  void receive(int peer, void* to, int64_t bytes);
  // out = the reduction over all ranks of `count` elements: `own` is this rank's, the peers' come
  // as one message each.
  void reduce(const void* own, void* out, int64_t count, DType dtype, Reduction reduction);
  // As reduce, but of one piece that comes as a message of its own.
  void reduce_piece(const void* own, void* out, int64_t count, const Combine& combine, DType dtype);
  // x = the reduction of everyone's x, for large x.
  void reduce_and_collect(const Tensor& x, Reduction reduction);

 private:
  struct Message {
    int peer;
    const void* data;
    int64_t bytes;
  };
  struct Part {  // of one piece
    const char* own;
    int64_t count;
    const Combine* combine;
    bool as_sent;             // summed in the type in which it travels
    std::byte* first_buffer;  // of level 0
  };
  const void* reduce_range(const Part& part, int low, int high, size_t level);
  const std::byte* wait_piece(Link& link, int peer);
  template <class Ready>
  void wait_until(Ready&& ready, int peer);
  void compare(const OperationHeader& theirs, int peer) const;
  [[noreturn]] void report_silence(int peer) const;
  void drive_sends();
  void make_room(const Combine& combine);
  Link& link_to(int peer) const { return *links_[static_cast<size_t>(peer)]; }

  LinkGroup& group_;
  const Call& call_;
  const std::vector<std::unique_ptr<Link>>& links_;
  std::deque<Message> waiting_;  // to be sent, in order per peer
  std::vector<int> sending_;     // peers whose link is busy
  OperationHeader heard_;
};

}  // namespace rankine

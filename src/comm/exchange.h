#pragma once
#include <algorithm>

#include "comm/combine.h"
#include "comm/group.h"

namespace rankine {

// One operation over a group's links: sends and receives whose waits drive each other, and the
// watchdog.
class LinkGroup::Exchange {
 public:
  // While nobody waits for the operation it gives its processor up soon: others compute there.
  Exchange(LinkGroup& group, const Call& call, const std::vector<std::unique_ptr<Link>>& links,
           const OperationQueue::Watch& watch)
      : group_(group), call_(call), links_(links), watch_(watch) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange();  // unless it is finished, its links are of no use any more

  // Waits until everything has gone out: what every operation ends with.
  void finish();

  // Sends the header to each of `peers` and compares theirs; Error{internal} when they differ.
  void agree();
  // As agree, but one way.
  void announce(int peer);
  void hear(int peer);

  // Queues a message; it goes out while this exchange waits for something.
  void send(int peer, const void* data, int64_t bytes);
  // Gathers a message of this length from the peer into `to`.
  void receive(int peer, void* to, int64_t bytes);
  // out = the reduction over all ranks of `count` elements: `own` is this rank's, the peers' come
  // as one message each.
  void reduce(const void* own, void* out, int64_t count, DType dtype, Reduction reduction);
  // As reduce, but of one piece that comes as a message of its own.
  void reduce_piece(const void* own, void* out, int64_t count, const Combine& combine, DType dtype);
  // x = the reduction of everyone's x, for large x.
  void reduce_and_collect(const Tensor& x, Reduction reduction);

  // A tensor as one part per rank of the group, in order and equal but for the last ones.
  struct Parts {
    Parts(const Tensor& x, int ranks)
        : data(static_cast<char*>(x.data)),
          elements(x.elements()),
          width(dtype_bytes(x.dtype)),
          part((elements + ranks - 1) / ranks) {}
    struct Piece {
      char* data;
      int64_t count;  // 0: past the end of the part
    };
    // The k-th run of at most `most` elements of a part.
    Piece piece(int owner, int64_t k, int64_t most) const {
      const int64_t begin = std::min(elements, owner * part);
      const int64_t end = std::min(elements, begin + part);
      const int64_t first = std::min(end, begin + k * most);
      return {data + first * width, std::min(most, end - first)};
    }
    Piece whole(int owner) const { return piece(owner, 0, part); }
    char* data;
    int64_t elements, width, part;
  };
  // For groups of several ranks on each of several hosts: sums within a host first, so that each
  // part crosses the network once per host. `out` gets this rank's part.
  void reduce_over_hosts(const Parts& in, char* out, DType dtype, Reduction reduction);
  // Every rank's part of x reaches all: over the network once per host, then within it.
  void gather_over_hosts(const Parts& x);

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
    // The ranks of the tree: first, first + stride ...; this one is number `self`.
    int first = 0, stride = 1, self = 0;
  };
  void reduce_and_send(const Parts::Piece& mine, int64_t bytes, const Combine& combine);
  void reduce_locally(const Parts& in, int host, int64_t k, int64_t most, const Combine& combine,
                      std::byte* sum);
  void wait_sent(int peer, const void* data);
  // Room for the sums of one piece; 16-bit numbers widen to twice their size.
  size_t level_bytes() const { return 2 * group_.settings_.piece_bytes; }
  const void* reduce_range(const Part& part, int low, int high, size_t level);
  const std::byte* wait_piece(int peer);
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
  const OperationQueue::Watch& watch_;
  std::deque<Message> waiting_;   // to be sent, in order per peer
  std::vector<Message> sending_;  // one at a time per peer
  OperationHeader heard_;
  bool finished_ = false;
};

}  // namespace rankine

#include "state/tied_sum.h"

#include <algorithm>

namespace rankine {
namespace {

struct Meeting {
  int64_t first, last;            // elements of the matrix
  int embedding_rank, head_rank;  // who owns them
};

// In order of the elements, which is the same for all and so cannot lock up.
std::vector<Meeting> meetings_of(const TiedCopy& tied) {
  std::vector<Meeting> out;
  if (tied.owners == 1)
    return {{0, tied.elements, tied.embedding.ranks[static_cast<size_t>(tied.data_rank)],
             tied.head.ranks[static_cast<size_t>(tied.data_rank)]}};
  for (int64_t at = 0; at < tied.elements;) {
    const int64_t i = at / tied.embedding.shard, j = at / tied.head.shard;
    const int64_t end =
        std::min({tied.elements, (i + 1) * tied.embedding.shard, (j + 1) * tied.head.shard});
    out.push_back({at, end, tied.embedding.ranks[static_cast<size_t>(i)],
                   tied.head.ranks[static_cast<size_t>(j)]});
    at = end;
  }
  return out;
}

Tensor range_of(const TiedCopy::Use& use, int64_t first, int64_t count) {
  return use.gradient.range(first - use.first, count);
}

}  // namespace

void TiedCopy::add(const Use& embedding_use, const Use& head_use, Ops& ops,
                   const Tensor& scratch) const {
  const int self = world->rank();
  for (const Meeting& meeting : meetings_of(*this)) {
    if (meeting.embedding_rank != self && meeting.head_rank != self) continue;
    for (int64_t at = meeting.first; at < meeting.last; at += chunk_elements) {
      const int64_t count = std::min(chunk_elements, meeting.last - at);
      if (meeting.embedding_rank == meeting.head_rank) {
        const Tensor one = range_of(embedding_use, at, count),
                     other = range_of(head_use, at, count);
        ops.add(one, other, one);
        ops.cast(one, other);
        continue;
      }
      const bool embeds = meeting.embedding_rank == self;
      const Tensor own = range_of(embeds ? embedding_use : head_use, at, count);
      const Tensor theirs = scratch.range(0, count);
      const int peer = embeds ? meeting.head_rank : meeting.embedding_rank;
      Work arriving = world->receive(theirs, peer, "tied gradient");
      Work leaving = world->send(own, peer, "tied gradient");
      arriving.lead(ops.queue());
      leaving.lead(ops.queue());
      ops.add(own, theirs, own);
    }
  }
}

}  // namespace rankine

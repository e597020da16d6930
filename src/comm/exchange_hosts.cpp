#include <cstring>

#include "comm/exchange.h"

// Collectives of groups with several ranks on each of several hosts. Ranks of a host are neighbours
// and as many on each, a power of two, so that the tree over all ranks is the tree over hosts of
// trees within them: the sums are those of the direct exchange, bit for bit.
namespace rankine {

// The sum over this host's ranks of the k-th piece of the part that `host`'s rank of the same place
// owns, in the sum's type.
void LinkGroup::Exchange::reduce_locally(const Parts& in, int host, int64_t k, int64_t most,
                                         const Combine& combine, std::byte* sum) {
  const int local = group_.settings_.ranks_per_host;
  const int self = group_.rank_ % local, first = group_.rank_ - self;
  const Parts::Piece own = in.piece(host * local + self, k, most);
  if (own.count == 0) return;
  for (int peer = first; peer < first + local; ++peer)
    if (peer != group_.rank_)
      link_to(peer).expect_message(static_cast<size_t>(own.count * in.width));
  reduce_range(
      {own.data, own.count, &combine, in.width == dtype_bytes(combine.sum), sum, first, 1, self}, 0,
      local, 0);
}

void LinkGroup::Exchange::reduce_over_hosts(const Parts& in, char* out, DType dtype,
                                            Reduction reduction) {
  constexpr int64_t ahead = 2;
  const Combine& combine = combine_of(dtype, reduction);
  const Combine& sums = combine_of(combine.sum, reduction);
  make_room(combine);
  const int local = group_.settings_.ranks_per_host, hosts = group_.size_ / local;
  const int host = group_.rank_ / local, self = group_.rank_ % local;
  const int64_t sum_width = dtype_bytes(combine.sum);
  const int64_t most =
      static_cast<int64_t>(group_.settings_.piece_bytes) / std::max(in.width, sum_width);
  // Two rounds of partial sums: one may still be on its way while the next is made.
  std::vector<std::byte>& partials = group_.partials_;
  partials.resize(static_cast<size_t>(2 * hosts) * level_bytes());
  const auto partial = [&](int64_t k, int h) {
    return partials.data() + static_cast<size_t>(k % 2 * hosts + h) * level_bytes();
  };
  const int64_t pieces = (in.part + most - 1) / most;
  for (int64_t k = -ahead; k < pieces; ++k) {
    for (int place = 0; place < local && k + ahead < pieces; ++place)
      for (int h = 0; h < hosts && place != self; ++h)
        if (const auto p = in.piece(h * local + place, k + ahead, most); p.count > 0)
          send(host * local + place, p.data, p.count * in.width);
    if (k < 0) continue;
    for (int h = 0; h < hosts; ++h) {
      const int peer = h * local + self;
      if (h != host) wait_sent(peer, partial(k, h));
      reduce_locally(in, h, k, most, combine, partial(k, h));
      const int64_t count = in.piece(peer, k, most).count;
      if (h != host) send(peer, partial(k, h), count * sum_width);
    }
    const int64_t count = in.piece(group_.rank_, k, most).count;
    if (count == 0) continue;
    for (int h = 0; h < hosts; ++h)
      if (h != host)
        link_to(h * local + self).expect_message(static_cast<size_t>(count * sum_width));
    std::byte* buffer = group_.scratch_.data();
    const void* sum = reduce_range({reinterpret_cast<const char*>(partial(k, host)), count, &sums,
                                    true, buffer, self, local, host},
                                   0, hosts, 0);
    char* to = out + k * most * in.width;
    if (in.width == sum_width)
      std::memcpy(to, sum, static_cast<size_t>(count * in.width));
    else
      combine.narrow(sum, to, count);
  }
}

void LinkGroup::Exchange::gather_over_hosts(const Parts& x) {
  const int local = group_.settings_.ranks_per_host, hosts = group_.size_ / local;
  const int host = group_.rank_ / local, self = group_.rank_ % local;
  const Parts::Piece own = x.whole(group_.rank_);
  for (int h = 0; h < hosts; ++h)
    if (h != host) send(h * local + self, own.data, own.count * x.width);
  for (int h = 0; h < hosts; ++h) {
    const Parts::Piece part = x.whole(h * local + self);
    if (h != host) receive(h * local + self, part.data, part.count * x.width);
    for (int place = 0; place < local; ++place)
      if (place != self) send(host * local + place, part.data, part.count * x.width);
  }
  for (int place = 0; place < local; ++place)
    for (int h = 0; h < hosts && place != self; ++h) {
      const Parts::Piece part = x.whole(h * local + place);
      receive(host * local + place, part.data, part.count * x.width);
    }
}

}  // namespace rankine

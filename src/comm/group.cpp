#include "comm/group.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "comm/exchange.h"

namespace rankine {
namespace {

// Below this every rank gets everyone's data and sums it all: one exchange instead of two.
constexpr int64_t small_bytes = 32 << 10;

char* bytes_of(const Tensor& x, int64_t element) {
  return static_cast<char*>(x.data) + element * dtype_bytes(x.dtype);
}

Tensor reached(Queue* queue, const Tensor& x) {
  return queue == nullptr ? x : Tensor{queue->reach(x.data), x.dtype, x.shape};
}

// Nothing may be copied from or to nowhere.
void copy_bytes(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace

LinkGroup::LinkGroup(int rank, GroupLinks links, GroupSettings settings)
    : rank_(rank),
      size_(static_cast<int>(links.collective.size())),
      links_(std::move(links)),
      settings_(std::move(settings)),
      sends_(links_.collective.size()),
      receives_(links_.collective.size()) {
  for (int i = 0; i < size_; ++i) {
    send_queues_.push_back(std::make_unique<OperationQueue>());
    receive_queues_.push_back(std::make_unique<OperationQueue>());
  }
}

LinkGroup::Call LinkGroup::call(OperationKind kind, const Tensor& x, int64_t bytes,
                                std::string_view tag, uint64_t sequence) {
  Call call{{.sequence = sequence,
             .bytes = static_cast<uint64_t>(bytes),
             .kind = kind,
             .dtype = static_cast<uint32_t>(x.dtype)},
            operation_names[kind]};
  std::memcpy(call.header.tag, tag.data(), std::min(tag.size(), sizeof call.header.tag - 1));
  return call;
}

Work LinkGroup::begin(OperationQueue& queue, OperationQueue::Run run) const {
  const Mark after = behind_ == nullptr ? Mark() : behind_->mark();
  if (after.passed()) return queue.start(std::move(run));
  return queue.start([after, run = std::move(run)](const OperationQueue::Watch& watch) {
    after.wait();
    run(watch);
  });
}

// What a group of one does at once.
void LinkGroup::copy_in_order(void* to, const void* from, int64_t bytes) const {
  Queue& queue = behind_ == nullptr ? host_queue() : *behind_;
  if (bytes > 0) queue.copy(to, from, static_cast<uint64_t>(bytes));
}

Work LinkGroup::collective(const Call& call, std::function<void(Exchange&)> run) {
  return begin(collectives_,
               [this, call, run = std::move(run)](const OperationQueue::Watch& watch) {
                 Exchange exchange(*this, call, links_.collective, watch);
                 run(exchange);
                 exchange.finish();
               });
}

// Between hosts sums of 16-bit numbers travel in f32, so that they round once.
int64_t LinkGroup::widened_bytes(int64_t part, DType dtype) const {
  const int64_t hosts = size_ / settings_.ranks_per_host;
  if (settings_.ranks_per_host == 1) return 0;
  const DType sum = combine_of(dtype, Reduction::sum).sum;
  return (hosts - 1) * part * (dtype_bytes(sum) - dtype_bytes(dtype));
}

double LinkGroup::waited_seconds() const {
  double sum = collectives_.waited_seconds();
  for (const auto& queues : {std::cref(send_queues_), std::cref(receive_queues_)})
    for (const auto& queue : queues.get()) sum += queue->waited_seconds();
  return sum;
}

Work LinkGroup::all_reduce(Tensor x, Reduction reduction, std::string_view tag) {
  if (size_ == 1) return {};
  Call c = call(kind_all_reduce, x, x.bytes(), tag, sequence_++);
  c.header.dtype |= static_cast<uint32_t>(reduction) << 8;
  x = reached(behind_, x);
  const int64_t part = (x.elements() + size_ - 1) / size_;
  const int64_t begin = std::min(x.elements(), rank_ * part);
  const int64_t own = (std::min(x.elements(), begin + part) - begin) * dtype_bytes(x.dtype);
  // Large: everyone's part to its owner, then the own part to everyone.
  count(x.bytes() > small_bytes ? x.bytes() - own + (size_ - 1) * own + widened_bytes(part, x.dtype)
                                : (size_ - 1) * x.bytes());
  return collective(c, [this, x, reduction](Exchange& exchange) {
    exchange.agree();
    if (x.bytes() > small_bytes && settings_.ranks_per_host > 1) {
      const Exchange::Parts parts(x, size_);
      exchange.reduce_over_hosts(parts, parts.whole(rank_).data, x.dtype, reduction);
      return exchange.gather_over_hosts(parts);
    }
    if (x.bytes() > small_bytes) return exchange.reduce_and_collect(x, reduction);
    gathered_.resize(static_cast<size_t>(x.bytes()));
    copy_bytes(gathered_.data(), x.data, x.bytes());
    for (int step = 1; step < size_; ++step) {
      exchange.send((rank_ + step) % size_, gathered_.data(), x.bytes());
    }
    exchange.reduce(gathered_.data(), x.data, x.elements(), x.dtype, reduction);
  });
}

Work LinkGroup::reduce_scatter(const Tensor& given, Tensor out, std::string_view tag) {
  const Tensor in = reached(behind_, given);
  out = reached(behind_, out);
  const int64_t n = out.elements();
  expect(in.dtype == out.dtype && in.elements() == n * size_, "reduce_scatter of equal parts");
  const char* own = bytes_of(in, rank_ * n);
  if (size_ == 1) {
    if (own != out.data) copy_in_order(out.data, own, out.bytes());
    return {};
  }
  const Call c = call(kind_reduce_scatter, in, in.bytes(), tag, sequence_++);
  count((size_ - 1) * out.bytes() + widened_bytes(n, in.dtype));
  return collective(c, [this, in, out, own, n](Exchange& exchange) {
    exchange.agree();
    if (settings_.ranks_per_host > 1)
      return exchange.reduce_over_hosts({in, size_}, static_cast<char*>(out.data), in.dtype,
                                        Reduction::sum);
    for (int step = 1; step < size_; ++step) {
      const int peer = (rank_ + step) % size_;
      exchange.send(peer, bytes_of(in, peer * n), out.bytes());
    }
    exchange.reduce(own, out.data, n, in.dtype, Reduction::sum);
  });
}

Work LinkGroup::all_gather(const Tensor& given, Tensor out, std::string_view tag) {
  const Tensor in = reached(behind_, given);
  out = reached(behind_, out);
  const int64_t n = in.elements();
  expect(in.dtype == out.dtype && out.elements() == n * size_, "all_gather of equal parts");
  if (size_ == 1) {
    if (in.data != out.data) copy_in_order(out.data, in.data, in.bytes());
    return {};
  }
  const Call c = call(kind_all_gather, in, out.bytes(), tag, sequence_++);
  count((size_ - 1) * in.bytes());
  return collective(c, [this, in, out, n](Exchange& exchange) {
    exchange.agree();
    if (char* own = bytes_of(out, rank_ * n); own != in.data) copy_bytes(own, in.data, in.bytes());
    if (settings_.ranks_per_host > 1) return exchange.gather_over_hosts({out, size_});
    for (int step = 1; step < size_; ++step)
      exchange.send((rank_ + step) % size_, in.data, in.bytes());
    for (int step = 1; step < size_; ++step) {
      const int peer = (rank_ + size_ - step) % size_;
      exchange.receive(peer, bytes_of(out, peer * n), in.bytes());
    }
  });
}

Work LinkGroup::broadcast(Tensor x, int root, std::string_view tag) {
  expect(root >= 0 && root < size_, "a root within the group");
  x = reached(behind_, x);
  if (size_ == 1) return {};
  const Call c = call(kind_broadcast, x, x.bytes(), tag, sequence_++);
  if (root == rank_) count((size_ - 1) * x.bytes());
  return collective(c, [this, x, root](Exchange& exchange) {
    exchange.agree();
    if (root != rank_) return exchange.receive(root, x.data, x.bytes());
    for (int step = 1; step < size_; ++step) {
      exchange.send((rank_ + step) % size_, x.data, x.bytes());
    }
  });
}

Work LinkGroup::barrier(std::string_view tag) {
  if (size_ == 1) return {};
  return collective(call(kind_barrier, {}, 0, tag, sequence_++),
                    [](Exchange& exchange) { exchange.agree(); });
}

Work LinkGroup::send(const Tensor& given, int peer, std::string_view tag) {
  const Tensor x = reached(behind_, given);
  expect(peer >= 0 && peer < size_ && peer != rank_, "a peer within the group");
  const auto p = static_cast<size_t>(peer);
  const Call c = call(kind_transfer, x, x.bytes(), tag, sends_[p]++);
  count(x.bytes());
  return begin(*send_queues_[p], [this, c, x, peer](const OperationQueue::Watch& watch) {
    Exchange exchange(*this, c, links_.sending, watch);
    exchange.announce(peer);
    exchange.send(peer, x.data, x.bytes());
    exchange.finish();
  });
}

Work LinkGroup::receive(Tensor x, int peer, std::string_view tag) {
  x = reached(behind_, x);
  expect(peer >= 0 && peer < size_ && peer != rank_, "a peer within the group");
  const auto p = static_cast<size_t>(peer);
  const Call c = call(kind_transfer, x, x.bytes(), tag, receives_[p]++);
  return begin(*receive_queues_[p], [this, c, x, peer](const OperationQueue::Watch& watch) {
    Exchange exchange(*this, c, links_.receiving, watch);
    exchange.hear(peer);
    exchange.receive(peer, x.data, x.bytes());
    exchange.finish();
  });
}

}  // namespace rankine

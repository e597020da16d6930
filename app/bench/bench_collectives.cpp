#include <sys/mman.h>

#include <cstring>

#include "base/error.h"
#include "bench/bench.h"
#include "machine/process.h"

namespace rankine {
namespace {

constexpr int rounds = 15;

// Memory as a training arena has it: large pages where the system gives them, all of it touched.
class Pages {
 public:
  explicit Pages(uint64_t bytes) : bytes_(bytes) {
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(data_ != MAP_FAILED, ErrorKind::resource, "no memory for {} bytes", bytes);
    madvise(data_, bytes, MADV_HUGEPAGE);
    std::memset(data_, 0, bytes);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { munmap(data_, bytes_); }
  Tensor view(DType dtype) const {
    return {data_, dtype, Shape{static_cast<int64_t>(bytes_) / dtype_bytes(dtype)}};
  }

 private:
  void* data_;
  uint64_t bytes_;
};

// The slowest rank's time of one go.
template <class Work>
double slowest(Communicator& ranks, Work&& work) {
  ranks.barrier("round").wait();
  const double start = monotonic_seconds();
  work();
  double taken = monotonic_seconds() - start;
  ranks.all_reduce({&taken, DType::f64, Shape{1}}, Reduction::max, "time").wait();
  return taken;
}

}  // namespace

CollectiveFigures measure_collectives(uint64_t bytes, const Rank& rank) {
  const Mesh mesh(rank.world, mesh_of({}, rank.world.size()));
  Communicator& ranks = *mesh.data;
  const auto size = static_cast<uint64_t>(ranks.size());
  bytes = std::max<uint64_t>(1, bytes / (64 * size)) * 64 * size;
  const Pages pages(bytes), others(bytes);
  const Tensor x = pages.view(DType::f32);
  const int64_t part = x.elements() / ranks.size();
  const Tensor own = x.range(ranks.rank() * part, part);
  const Tensor half = pages.view(DType::bf16).range(0, x.elements());
  // All of them in every round: what disturbs the machine for a while disturbs all alike.
  std::vector<double> copies, sums, scatters, gathers, halves;
  std::vector<double> sum_shares, scatter_shares, gather_shares, speedups;
  for (int round = 0; round <= rounds; ++round) {
    const double copy =
        slowest(ranks, [&] { std::memcpy(others.view(DType::f32).data, x.data, bytes); });
    const double sum = slowest(ranks, [&] { ranks.all_reduce(x, Reduction::sum, "bench").wait(); });
    const double scatter = slowest(ranks, [&] { ranks.reduce_scatter(x, own, "bench").wait(); });
    const double gather = slowest(ranks, [&] { ranks.all_gather(own, x, "bench").wait(); });
    const double bf16 =
        slowest(ranks, [&] { ranks.all_reduce(half, Reduction::sum, "bench").wait(); });
    if (round == 0) continue;  // to warm up
    copies.push_back(copy);
    sums.push_back(sum);
    scatters.push_back(scatter);
    gathers.push_back(gather);
    halves.push_back(bf16);
    sum_shares.push_back(copy / sum);
    scatter_shares.push_back(copy / scatter);
    gather_shares.push_back(copy / gather);
    speedups.push_back(sum / bf16);
  }
  return {.bytes = bytes,
          .copy = median(copies),
          .all_reduce = median(sums),
          .reduce_scatter = median(scatters),
          .all_gather = median(gathers),
          .all_reduce_bf16 = median(halves),
          .all_reduce_share = median(sum_shares),
          .reduce_scatter_share = median(scatter_shares),
          .all_gather_share = median(gather_shares),
          .bf16_speedup = median(speedups)};
}

}  // namespace rankine

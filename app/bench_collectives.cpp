#include <sys/mman.h>

#include <cstring>

#include "base/error.h"
#include "bench.h"
#include "runtime/process.h"

namespace rankine {
namespace {

constexpr int rounds = 9;

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

// The median over rounds of the slowest rank's time.
template <class Work>
double slowest(Communicator& ranks, Work&& work) {
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    ranks.barrier("round").wait();
    const double start = monotonic_seconds();
    work();
    double taken = monotonic_seconds() - start;
    ranks.all_reduce({&taken, DType::f64, Shape{1}}, Reduction::max, "time").wait();
    seconds.push_back(taken);
  }
  return median(seconds);
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
  CollectiveFigures f;
  f.bytes = bytes;
  f.copy = slowest(ranks, [&] { std::memcpy(others.view(DType::f32).data, x.data, bytes); });
  f.all_reduce = slowest(ranks, [&] { ranks.all_reduce(x, Reduction::sum, "bench").wait(); });
  f.reduce_scatter = slowest(ranks, [&] { ranks.reduce_scatter(x, own, "bench").wait(); });
  f.all_gather = slowest(ranks, [&] { ranks.all_gather(own, x, "bench").wait(); });
  f.all_reduce_bf16 =
      slowest(ranks, [&] { ranks.all_reduce(half, Reduction::sum, "bench").wait(); });
  return f;
}

}  // namespace rankine

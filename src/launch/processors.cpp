#include "launch/processors.h"

#include <sched.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace rankine {
namespace {

// A set of processors large enough for any machine; glibc's own ends at 1024.
class ProcessorSet {
 public:
  ProcessorSet() : set_(CPU_ALLOC(most)) {
    require(set_ != nullptr, ErrorKind::resource, "out of memory");
    CPU_ZERO_S(bytes(), set_.get());
  }
  static size_t bytes() { return CPU_ALLOC_SIZE(most); }
  cpu_set_t* get() { return set_.get(); }
  void add(int processor) {
    require(0 <= processor && processor < most, ErrorKind::environment, "no processor {}",
            processor);
    CPU_SET_S(static_cast<size_t>(processor), bytes(), set_.get());
  }
  std::vector<int> list() const {
    std::vector<int> out;
    for (int i = 0; i < most; ++i)
      if (CPU_ISSET_S(static_cast<size_t>(i), bytes(), set_.get())) out.push_back(i);
    return out;
  }

 private:
  static constexpr int most = 16384;
  struct Free {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
  };
  std::unique_ptr<cpu_set_t, Free> set_;
};

}  // namespace

std::vector<int> allowed_processors() {
  ProcessorSet set;
  require(::sched_getaffinity(0, ProcessorSet::bytes(), set.get()) == 0, ErrorKind::environment,
          "cannot read which processors may be used: {}", std::strerror(errno));
  return set.list();
}

std::vector<int> processor_share(int local_rank, std::span<const std::vector<int>> allowed) {
  expect(0 <= local_rank && static_cast<size_t>(local_rank) < allowed.size(),
         "the local rank is one of the local ranks");
  const std::vector<int>& mine = allowed[static_cast<size_t>(local_rank)];
  expect(!mine.empty(), "a rank has processors");
  size_t sharers = 0, index = 0;
  for (size_t i = 0; i < allowed.size(); ++i)
    if (allowed[i] == mine) {
      if (i < static_cast<size_t>(local_rank)) ++index;
      ++sharers;
    }
  if (sharers > mine.size()) return {mine[index % mine.size()]};
  const auto cut = [&](size_t i) {
    return mine.begin() + static_cast<std::ptrdiff_t>(mine.size() * i / sharers);
  };
  return {cut(index), cut(index + 1)};
}

std::vector<int> processor_share(int local_rank, int local_ranks) {
  expect(local_ranks >= 1, "there is a local rank");
  const std::vector allowed(static_cast<size_t>(local_ranks), allowed_processors());
  return processor_share(local_rank, allowed);
}

void pin_to(const std::vector<int>& processors) {
  ProcessorSet set;
  for (const int processor : processors) set.add(processor);
  require(::sched_setaffinity(0, ProcessorSet::bytes(), set.get()) == 0, ErrorKind::environment,
          "cannot confine this rank to {} of the processors, the first being {}: {}",
          processors.size(), processors.empty() ? -1 : processors[0], std::strerror(errno));
}

int threads_for(int64_t asked, const char* omp_num_threads, std::span<const int> share) {
  if (asked > 0) return static_cast<int>(asked);
  // A list ("4,2") gives the threads of each nesting level; the first is ours.
  const int64_t wished = omp_num_threads ? std::strtol(omp_num_threads, nullptr, 10) : 0;
  if (wished > 0 && wished <= 4096) return static_cast<int>(wished);
  return static_cast<int>(share.size());
}

}  // namespace rankine

#pragma once
#include <cstdint>
#include <span>
#include <vector>

// Which processors the ranks of one machine compute on. Rule: ranks that may use the same
// processors share them out, so that none competes with another while there are enough.
namespace rankine {

// The numbers of the processors this thread may run on, ascending.
std::vector<int> allowed_processors();

// The part of allowed[local_rank] that this rank takes, allowed[i] being the processors of local
// rank i: ranks with equal lists cut them into contiguous slices, sizes differing by one at most;
// where they outnumber the processors, each has one, round robin. Never empty.
std::vector<int> processor_share(int local_rank, std::span<const std::vector<int>> allowed);
// The same when every local rank may use what this thread may use.
std::vector<int> processor_share(int local_rank, int local_ranks);

// Confines this thread, and those it starts afterwards, to `processors`. Error{environment}.
void pin_to(const std::vector<int>& processors);

// Threads to compute with on a share: `asked` unless 0, else OMP_NUM_THREADS (`omp_num_threads`,
// may be null), else one per processor.
int threads_for(int64_t asked, const char* omp_num_threads, std::span<const int> share);

}  // namespace rankine

#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "state/disk_states.h"

namespace rankine {

// Host memory through which blocks of DiskStates pass: one is worked on while the next one arrives
// and the one before leaves. For one thread at a time; others have a staging of their own.
class DiskStaging {
 public:
  using Parts = std::vector<size_t>;
  // Room for `parts`; levels of strict sums take turns in that of gradients. `name` is unique.
  DiskStaging(DiskStates& states, std::string name, Parts parts);

  void add_to(MemoryPlan& plan) const;
  void bind(Arena& host);
  DiskStates& states() { return states_; }
  void settle();  // waits for what is being written

  // Visits blocks: parts `read` of it have arrived as this rank's [shard], by their number (levels
  // of gradients by that of gradients), and those `written` go back afterwards.
  struct Pass {
    Parts read = {}, written = {};
    std::function<void(size_t block, std::span<const Tensor> parts)> visit = {};
    bool backwards = false;  // from the last block to the first
  };
  void for_each_block(const Pass& pass);  // the next block arrives meanwhile
  void with_block(size_t block, const Pass& pass);
  // A part of up to two blocks at a time in memory, until close() writes them back.
  Tensor open(size_t block, size_t part);
  void close();
  // Parameters that are whole: this rank's shard of a block arrives within [block elements], `fill`
  // adds the others', and all of it goes back.
  void complete(size_t block,
                const std::function<void(const Tensor& own, const Tensor& all)>& fill);

 private:
  struct Half {
    std::vector<Tensor> memory;  // of each part, flat; empty: not staged
    std::vector<TierWork> under_way;
    void wait();
  };
  static size_t slot(size_t part) { return std::min<size_t>(part, DiskStates::gradients); }
  std::string name_of(int half, size_t part) const;
  int64_t bytes_of(size_t part) const;
  void start(bool write, Half& half, size_t block, const Parts& parts);
  void visit(Half& half, size_t block, const Pass& pass);

  DiskStates& states_;
  std::string name_;
  Parts parts_;
  Half halves_[2];
  size_t next_ = 0;  // of halves_
  struct Opened {
    size_t block, part;
  };
  std::vector<Opened> opened_;
};

}  // namespace rankine

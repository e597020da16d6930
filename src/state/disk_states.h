#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "state/offload.h"
#include "state/param_layout.h"
#include "tensor/arena.h"
#include "tensor/tier_file.h"

namespace rankine {

// This rank's optimizer states in a file: flat f32 buffers in owned order, one behind another.
// Block by block they pass through host memory while the one before is worked on.
class DiskStates {
 public:
  // Shards are whole multiples of it, so that each lies apart from the others for direct access.
  static constexpr int64_t shard_unit = static_cast<int64_t>(TierFile::alignment) / 4;
  enum Part : size_t { weights, momentum, variance, gradients, part_count };
  using Parts = std::vector<Part>;

  explicit DiskStates(const ParamLayout& layout) : layout_(layout) {}
  ~DiskStates();
  DiskStates(const DiskStates&) = delete;
  DiskStates& operator=(const DiskStates&) = delete;

  void add_to(MemoryPlan& plan) const;
  // Makes the file; Error as TierFile's.
  void bind(const OffloadSetup& setup, Arena& host);
  std::string description() const;  // "16.4 GiB in '/scratch/...', io_uring, direct"

  // A part of all blocks, f32 [owned], as mapped memory: for initial values and checkpoints, which
  // touch everything once. unmap() lets go of that memory, and must come before the calls below.
  Tensor mapped(Part part);
  void unmap();

  // Visits every block in order: parts `read` of it have arrived as f32 [shard], by their number,
  // and those `written` go back afterwards; the next block arrives meanwhile.
  struct Pass {
    Parts read, written;
    std::function<void(size_t block, std::span<const Tensor> parts)> visit;
  };
  void for_each_block(const Pass& pass);
  void with_block(size_t block, const Pass& pass);
  // A part of up to two blocks at a time in memory, until close() writes them back.
  Tensor open(size_t block, Part part);
  void close();

 private:
  struct Staging {
    std::vector<Tensor> memory;  // f32 [largest shard] of each part
    std::vector<TierWork> under_way;
    void wait();
  };
  uint64_t offset(Part part, size_t block) const;
  uint64_t bytes(size_t block) const;
  void start(bool write, Staging& staging, size_t block, const Parts& parts);
  void visit(Staging& staging, size_t block, const Pass& pass);
  int64_t largest_shard() const;
  uint64_t part_bytes() const { return static_cast<uint64_t>(layout_.owned()) * 4; }

  const ParamLayout& layout_;
  std::unique_ptr<TierFile> file_;
  Staging staging_[2];
  size_t next_ = 0;  // of staging_
  struct Opened {
    size_t block;
    Part part;
  };
  std::vector<Opened> opened_;
  void* map_ = nullptr;
};

}  // namespace rankine

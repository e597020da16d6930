#pragma once
#include <memory>
#include <string>
#include <vector>

#include "io/tier_file.h"
#include "ops/ops.h"
#include "state/offload.h"
#include "state/param_layout.h"
#include "tensor/arena.h"

namespace rankine {

// This rank's model states in a file: flat buffers, one behind another, each in owned order, or
// parameters of all owners in the whole order.
class DiskStates {
 public:
  // Behind `gradients`, which is the sum, come further levels of strict sums.
  enum Part : size_t { weights, momentum, variance, parameters, gradients };
  struct Setup {
    bool weights = true;  // f32 master weights
    bool moments = true;  // momentum, variance and gradients, f32
    int gradient_levels = 1;
    bool parameters = false;
    DType compute = DType::f32;  // of parameters
    bool whole = false;          // parameters of all owners
    int owner = 0;               // this rank among the owners
  };

  DiskStates(const ParamLayout& layout, const Setup& setup);
  ~DiskStates();
  DiskStates(const DiskStates&) = delete;
  DiskStates& operator=(const DiskStates&) = delete;

  void add_to(MemoryPlan& plan) const;
  void bind(const OffloadSetup& setup, Ops& ops);  // makes the file; Error as TierFile's
  std::string description() const { return file_->description(); }
  TierUse use() const { return space_->use(); }

  bool holds(size_t part) const { return part < parts_.size() && parts_[part].elements > 0; }
  DType dtype(size_t part) const { return parts_[part].dtype; }
  bool whole(size_t part) const { return part == parameters && setup_.whole; }
  int owner() const { return setup_.owner; }
  const ParamLayout& layout() const { return layout_; }

  // A part of all blocks as mapped memory: for initial values and checkpoints, which touch
  // everything once. unmap() lets go of that memory, and must come before the calls below.
  Tensor mapped(size_t part);
  void unmap();

  // This rank's shard of a block's part, or all of the block where the part is whole.
  TierWork start_read(size_t part, size_t block, void* to);
  TierWork start_write(size_t part, size_t block, const void* from);
  // This rank's shard also where the part is whole.
  TierWork start_read_own(size_t part, size_t block, void* to);
  TierWork start_write_own(size_t part, size_t block, const void* from);

 private:
  struct Place {
    std::string name;
    const char* category;
    DType dtype = DType::f32;
    int64_t elements = 0;  // 0: not held
    uint64_t begin = 0;    // in the file
  };
  struct Extent {
    uint64_t offset, bytes;
  };
  Extent extent_of(size_t part, size_t block, bool own) const;
  uint64_t bytes() const;

  const ParamLayout& layout_;
  Setup setup_;
  std::vector<Place> parts_;
  std::unique_ptr<TierSpace> space_;  // the file, for requests
  const TierFile* file_ = nullptr;
  void* map_ = nullptr;
};

}  // namespace rankine

#pragma once
#include <vector>

#include "base/exact_sum.h"
#include "comm/communicator.h"
#include "ops/ops.h"
#include "state/disk_staging.h"
#include "state/param_layout.h"
#include "state/state_ranks.h"
#include "state/zero_plan.h"
#include "tensor/arena.h"

namespace rankine {

// Gradients on their way from backward to their owners. Sums over ranks follow the communicator's
// tree. Over micro-batches they run on, or with `strict` follow a tree too: micro-batch t of rank r
// is leaf t * ranks + r of one balanced tree, whatever the number of ranks.
class GradientSums {
 public:
  struct Setup {
    ZeroPlan zero = {};
    int micros = 1;
    bool strict = false;
    Offload offload = Offload::none;  // where the sums lie
    bool apart = false;               // the device's memory is not the host's
  };
  // `disk`: the way to where they do with Offload::disk; it outlives them.
  GradientSums(const ParamLayout& layout, const Setup& setup, const StateRanks& ranks,
               DiskStaging* disk = nullptr);
  // Sums of gradients that are held at a time, one for each level of strict ones.
  static int levels(const Setup& setup);

  // Whether gradients leave for their owners after every micro-batch, otherwise once a step.
  bool every_micro() const { return setup_.strict || pooled(); }
  // Whether a block's gradients lie in a pool that blocks take turns in.
  bool pooled() const {
    return reduces_every_micro(setup_.zero) || setup_.offload != Offload::none;
  }
  void reserve_pool(int64_t bytes) { pool_bytes_ = bytes; }
  void add_to(MemoryPlan& plan) const;
  void bind(Arena& device, Arena& host, Ops& ops);

  // The memory a block's gradients are written to: f32 [block elements]. Its writers come behind
  // the reductions that still read it. `offset` is into the pool, in bytes.
  Tensor begin(size_t block, int64_t offset);
  void reduce(size_t block);  // starts
  void finish();              // what comes behind in the queue of the sums finds them complete
  // This rank's shard, f32; not on disk.
  Tensor result(size_t block) const;
  // Adds the squares of a result's counted elements to an exact sum.
  void add_squares(size_t block, const Tensor& gradients, Tensor exact) const;
  // Of results on disk the squares are added up as each one is complete, which spares reading it
  // for them. Those of this step:
  ExactSum take_squares();
  // Says that a result on disk changes after its last reduction, so that its squares come later.
  void squares_come_later(size_t block) { later_[block] = true; }
  bool has_squares(size_t block) const { return on_disk() && !later_[block]; }
  std::vector<NamedTensor> pieces(Copies copies) const;

 private:
  struct Pending {
    size_t block;
    Work work;
    Tensor whole, own;  // what is read; where this rank's sum arrives
    int micro;
  };
  int levels() const { return levels(setup_); }
  int top() const { return levels() - 1; }  // where the result is
  Tensor accumulator(int level, size_t block) const;
  void add_partial_sums(size_t block) const;
  void settle(Pending& pending);
  void settle_overlapping(const Tensor& memory);

  bool on_disk() const { return setup_.offload == Offload::disk; }
  // Whether gradients are copied to the host before they are added there.
  bool crosses() const { return setup_.apart && setup_.offload != Offload::none; }
  // Those that work on sums.
  Ops& sum_ops() const { return setup_.offload == Offload::none ? *ops_ : ops_->host(); }
  Tensor beside_sums(const Tensor& own) const;
  // What to do with a level's sum of a block.
  struct Visit {
    bool read = false, write = false;
    std::function<void(const Tensor& sum)> act = {};
  };
  void visit_level(int level, size_t block, const Visit& visit);
  void put(int level, const Pending& pending);
  void add(int level, const Pending& pending);
  void complete(const Pending& pending, const Tensor& sum) const;

  const ParamLayout& layout_;
  Setup setup_;
  DiskStaging* disk_;
  StateRanks ranks_;
  int64_t pool_bytes_ = 0;
  Ops* ops_ = nullptr;
  Tensor whole_, pool_, arrived_;     // arrived_: of a gradient on the host
  std::vector<Tensor> accumulators_;  // flat, owned order; the last holds the result
  std::vector<Tensor> current_;       // per block: where its gradients are
  std::vector<int> reduced_;          // per block: micro-batches of this step so far
  std::vector<bool> later_;           // per block: squares_come_later
  Tensor squares_;                    // i64 [ExactSum::size], of results on disk
  std::vector<Pending> pending_;
};

}  // namespace rankine

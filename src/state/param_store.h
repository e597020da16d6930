#pragma once
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "ops/ops.h"
#include "state/gradient_sums.h"
#include "state/param_layout.h"
#include "state/tied_sum.h"
#include "state/zero_plan.h"
#include "tensor/arena.h"

namespace rankine {

enum class Purpose : uint8_t { inference, training };

struct StoreSetup {
  DType compute = DType::f32;
  Purpose purpose = Purpose::training;
  ZeroPlan zero = {};
  int micros = 1;       // of this rank in a step
  bool strict = false;  // sums whose order no layout changes
  OffloadSetup offload = {};
};

// The model states of one rank of the data axis in flat buffers: weights (f32 master), the compute
// dtype's copy of them (the same memory when that is f32), and for training gradients, momentum and
// variance (f32), each whole or this rank's shard as ZeroPlan says. With the optimizer offloaded
// all but the compute copy lies in another tier. Padding stays zero.
class ParamStore {
 public:
  // `tied` outlives the store; null: no tied matrix has a copy.
  ParamStore(std::span<const BlockDescription> blocks, const StoreSetup& setup,
             const StateRanks& ranks, const TiedCopy* tied = nullptr);

  // Bytes of the pool that gathered parameters take turns in, and of the one for gradients on
  // their way to their owners; before add_to.
  void reserve_pools(int64_t gathered_bytes, int64_t gradient_bytes);
  void add_to(MemoryPlan& plan) const;
  void bind(Arena& device, Arena& host, Ops& ops);  // must come before everything below

  // Every weight from (seed, its name, its global index): the same for every layout.
  void initialise(uint64_t seed);
  // Says where offloaded states lie; "" without any.
  std::string offload_description() const;

  // Rounds the owned weights into the compute copy and collects what others own; needed after
  // writing to weights().
  void refresh_compute();

  // ---- during a step, per block, in the order of the step program
  void gather(size_t block, int64_t offset);  // starts; `offset`: into the pool, bytes
  void release(size_t block);
  void refresh(size_t block);                          // starts collecting the updated parameters
  void wait_parameters(size_t block);                  // of this block alone
  void begin_gradients(size_t block, int64_t offset);  // where they are written from now on
  void reduce(size_t block);                           // starts
  void finish_reductions();
  // Views in the order a block's BlockRun wants them.
  std::span<const Tensor> params(size_t block) const { return views_[block].params; }
  std::span<const Tensor> grads(size_t block) const { return views_[block].grads; }

  // Logical tensors (no padding), by global name: this rank's pieces of each, everything with one
  // owner. Gradients are there between the reductions and the next step.
  // On disk they are mapped: release_pieces() lets that memory go, and comes before the next step.
  std::vector<NamedTensor> weights(Copies copies = Copies::all) const;
  std::vector<NamedTensor> gradients(Copies copies = Copies::all) const {
    return sums_.pieces(copies);
  }
  std::vector<NamedTensor> momentum(Copies copies = Copies::all) const {
    return layout_.pieces(on_disk() ? disk_->mapped(DiskStates::momentum) : momentum_, false,
                          copies);
  }
  std::vector<NamedTensor> variance(Copies copies = Copies::all) const {
    return layout_.pieces(on_disk() ? disk_->mapped(DiskStates::variance) : variance_, false,
                          copies);
  }
  void release_pieces() const {
    if (on_disk()) disk_->unmap();
  }
  // Whether this rank's counted states are the ones to add up and to write: states that all ranks
  // of the data axis hold whole count on the first.
  bool counts() const { return layout_.owners() > 1 || ranks_.data.rank() == 0; }

  // Adds the squares of what counts of the owned gradients to an exact sum: over all ranks each
  // logical element once.
  void sum_squared_gradients(Tensor exact) const;
  // One optimizer step over everything owned; weight decay only where ParamSpec::decay says so.
  void update(const AdamWStep& step);

  const ParamLayout& layout() const { return layout_; }
  const StoreSetup& setup() const { return setup_; }
  Communicator& data() const { return ranks_.data; }
  int64_t elements() const { return layout_.elements(); }  // of all blocks, with padding
  bool reduces_every_micro() const { return sums_.every_micro(); }
  bool params_whole() const { return setup_.zero.params == Held::whole; }

 private:
  struct BlockViews {
    std::vector<Tensor> params, grads;
    Work arriving;  // parameters under way
  };
  bool offloads() const { return setup_.offload.optimizer != Offload::none; }
  bool on_disk() const { return disk_ != nullptr; }
  bool copies() const { return setup_.compute != DType::f32 || offloads(); }
  // One block's update, of its shards in memory.
  struct BlockStates {
    Tensor weights, gradients, momentum, variance;
  };
  void update_block(const AdamWStep& step, size_t block, const BlockStates& states);
  void sum_squares(size_t block, const Tensor& gradients, const Tensor& exact) const;
  bool weights_whole() const { return !copies() && params_whole(); }
  Tensor own_part(const Tensor& flat, const ParamLayout::BlockLayout& block, bool whole) const;
  void show(size_t block, const Tensor& values, std::vector<Tensor> BlockViews::*views);

  StoreSetup setup_;
  StateRanks ranks_;
  ParamLayout layout_;
  const TiedCopy* tied_;
  std::unique_ptr<DiskStates> disk_;
  GradientSums sums_;
  int64_t gathered_bytes_ = 0;
  std::vector<BlockViews> views_;
  // For each block, the places (block, index) of views into it, tied uses among them.
  std::vector<std::vector<std::pair<size_t, size_t>>> uses_;
  Ops* ops_ = nullptr;
  Tensor weights_, computed_, gathered_, momentum_, variance_, tied_scratch_;
};

}  // namespace rankine

#pragma once
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "io/tier_memory.h"
#include "ops/ops.h"
#include "state/gradient_sums.h"
#include "state/param_layout.h"
#include "state/pending_update.h"
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
  bool apart = false;  // the device's memory is not the host's
};

// The model states of one rank of the data axis in flat buffers: weights (f32 master), the compute
// dtype's copy of them (the same memory when that is f32 and lies in the same tier), and for
// training gradients, momentum and variance (f32), each whole or this rank's shard as ZeroPlan
// says, and each in the tier that OffloadSetup says. Padding stays zero.
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
  // "16.4 GiB in '/scratch/...', io_uring, direct": the file of states; "" without one.
  std::string disk_description() const { return disk_ ? disk_->description() : ""; }

  TierTraffic tier_traffic() const {
    return {.host = host_parameters_ ? host_parameters_->use() : TierUse{},
            .disk = disk_ ? disk_->use() : TierUse{}};
  }

  // Rounds the owned weights into the compute copy and collects what others own; needed after
  // writing to weights(), which it releases.
  void refresh_compute();

  // ---- during a step, per block, in the order of the step program
  void begin_parameters(size_t block,
                        int64_t offset);  // where they are gathered from now on, bytes
  void load(size_t block);                // starts reading them from their tier
  void gather(size_t block);              // starts
  void release(size_t block);
  void refresh(size_t block);  // starts collecting the updated parameters
  // The computations to come see the block's parameters.
  void lead_parameters(size_t block);
  void wait_parameters(size_t block);                  // the host sees them
  void wait_all_parameters();                          // before what they come into may go
  void begin_gradients(size_t block, int64_t offset);  // where they are written from now on
  void reduce(size_t block);                           // starts
  void finish_reductions();
  // Views in the order a block's BlockRun wants them.
  std::span<const Tensor> params(size_t block) const { return views_[block].params; }
  std::span<const Tensor> grads(size_t block) const { return views_[block].grads; }

  // Logical tensors (no padding), by global name: this rank's pieces of each, everything with one
  // owner. Gradients are there between the reductions and the next step. All wait for an update
  // that is under way. On disk they are mapped: release_pieces() lets that memory go, and comes
  // before the next step.
  std::vector<NamedTensor> weights(Copies copies = Copies::all) const;
  std::vector<NamedTensor> gradients(Copies copies = Copies::all) const;
  std::vector<NamedTensor> momentum(Copies copies = Copies::all) const;
  std::vector<NamedTensor> variance(Copies copies = Copies::all) const;
  // The compute dtype's copy, which computations see.
  std::vector<NamedTensor> computed(Copies copies = Copies::all) const;
  void release_pieces() const {
    if (disk_ != nullptr) disk_->unmap();
  }
  // Whether this rank's counted states are the ones to add up and to write: states that all ranks
  // of the data axis hold whole count on the first.
  bool counts() const { return layout_.owners() > 1 || ranks_.data.rank() == 0; }

  // Adds the squares of what counts of the owned gradients to an exact sum: over all ranks each
  // logical element once.
  // Takes what sums of the step have put aside for it: once a step.
  // `exact` lies in optimizer_memory().
  void sum_squared_gradients(Tensor exact);
  // One optimizer step over everything owned; weight decay only where ParamSpec::decay says so.
  void update(const AdamWStep& step);

  // ---- delayed updates, where OffloadSetup has them
  // The same beside what follows; computations see it from publish() on.
  void start_update(const AdamWStep& step);
  // Waits for the update under way and rounds it into the compute copy; refresh() is to follow.
  void publish();
  // Whether the compute copy is one update behind the weights.
  bool lags() const { return lags_; }
  // Says so of a copy that was written to computed(), and collects what others own.
  void restore_lag();

  // Where the optimizer works, and those that do.
  Tier optimizer_memory() const {
    return setup_.offload.optimizer == Offload::none ? Tier::device : Tier::host;
  }
  Ops& optimizer_ops() const { return optimizer_memory() == Tier::device ? *ops_ : ops_->host(); }

  const ParamLayout& layout() const { return layout_; }
  const StoreSetup& setup() const { return setup_; }
  Communicator& data() const { return ranks_.data; }
  int64_t elements() const { return layout_.elements(); }  // of all blocks, with padding
  bool reduces_every_micro() const { return sums_.every_micro(); }
  bool params_whole() const { return setup_.zero.params == Held::whole; }
  // Whether parameters come from a tier.
  bool loads() const { return setup_.offload.parameters != Offload::none; }
  // Whether they are brought together for each use.
  bool gathers() const { return loads() || !params_whole(); }

 private:
  struct BlockViews {
    std::vector<Tensor> params, grads;
    Tensor gathered;
    TierWork loading;
    Work arriving;  // parameters under way
  };
  // One block's shards in memory.
  struct BlockStates {
    Tensor weights, gradients, momentum, variance, computed;
  };
  // Parts of DiskStates as bits.
  struct BlockPass {
    DiskStaging* staging = nullptr;
    unsigned read = 0, written = 0;
    bool backwards = false;
  };

  bool optimizer_on(Offload tier) const { return setup_.offload.optimizer == tier; }
  bool parameters_on(Offload tier) const { return setup_.offload.parameters == tier; }
  bool copies() const;
  Tier weights_tier() const {
    return tier_of(copies() ? setup_.offload.optimizer : setup_.offload.parameters);
  }
  size_t weights_part() const { return copies() ? DiskStates::weights : DiskStates::parameters; }
  DiskStates::Setup disk_setup() const;
  std::unique_ptr<DiskStaging> make_staging() const;
  Tensor mapped(size_t part) const;
  Tensor computed_flat() const;
  BlockStates states_of(size_t block, std::span<const Tensor> staged) const;
  // Calls visit(block, states) for all blocks; of `read` and `written` what lies on disk passes
  // through the staging. Nothing is allocated without a disk.
  template <class Visit>
  void visit_blocks(const BlockPass& pass, const Visit& visit) const;
  void add_parameters_to(MemoryPlan& plan) const;
  void update_block(const AdamWStep& step, size_t block, const BlockStates& states) const;
  void round_weights();
  // Whether weights or parameters lie in other memory than that in which the optimizer works.
  bool crosses() const;
  // A tensor's place in the optimizer's memory, itself where it lies there; with its contents when
  // they are `read`. put_back() brings what was written there to where it belongs.
  Tensor brought(const Tensor& tensor, bool read) const;
  void put_back(const Tensor& there, const Tensor& tensor) const;
  uint64_t crossing_bytes() const;
  void collect();
  bool weights_whole() const { return !copies() && params_whole(); }
  Tensor own_part(const Tensor& flat, const ParamLayout::BlockLayout& block, bool whole) const;
  void show(size_t block, const Tensor& values, std::vector<Tensor> BlockViews::*views);

  StoreSetup setup_;
  StateRanks ranks_;
  ParamLayout layout_;
  const TiedCopy* tied_;
  std::unique_ptr<DiskStates> disk_;
  std::unique_ptr<DiskStaging> staging_, update_staging_;  // update_: of the delayed update
  GradientSums sums_;
  int64_t gathered_bytes_ = 0;
  std::vector<BlockViews> views_;
  // For each block, the places (block, index) of views into it, tied uses among them.
  std::vector<std::vector<std::pair<size_t, size_t>>> uses_;
  Ops* ops_ = nullptr;
  Tensor weights_, computed_, gathered_, momentum_, variance_, tied_scratch_, crossing_;
  std::unique_ptr<TierSpace> host_parameters_;
  bool lags_ = false, completing_ = false;  // completing_: of parameters on disk
  std::unique_ptr<PendingUpdate> pending_;  // goes first
};

}  // namespace rankine

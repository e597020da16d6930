#pragma once
#include <functional>
#include <span>
#include <vector>

#include "model/block.h"
#include "runtime/step_plan.h"
#include "state/param_store.h"
#include "tensor/arena.h"

namespace rankine {

struct ExecutorSetup {
  MicroShape shape;  // largest micro-batch
  DType compute = DType::f32;
  Purpose purpose = Purpose::training;
  int64_t positions = 0;  // of the rotary table and the key/value caches
  bool cached = false;    // inference with key/value caches for one sequence
};

// What a step program works on, besides memory: all micro-batches of this rank, one behind another.
struct StepInputs {
  std::span<const int32_t> ids, targets;  // [micros * B * T]; targets < 0 are ignored
  double gradient_scale = 1;              // loss scale / global number of valid tokens
  uint64_t seed = 0, step = 0;
  int rank = 0,
      ranks = 1;  // of the data axis: micro-batch m is number m * ranks + rank of the step
};

// Runs step programs over a model's blocks with memory from one arena; the order of work is the
// program's, nothing is decided here.
class Executor {
 public:
  // `plan` is empty for inference; it outlives the executor.
  Executor(Ops& ops, const Model& model, ParamStore& store, const ExecutorSetup& setup,
           const StepPlan& plan, int micros, int in_flight);

  void add_to(MemoryPlan& plan) const;
  void bind(Arena& arena);

  // Runs the plan's actions in order; `update` is called at the update action, when all gradients
  // have reached their owners. Afterwards loss() is this rank's sum of token losses in nats.
  void run(const StepInputs& inputs, const std::function<void()>& update);
  // The summed loss of one micro-batch without gradients or dropout. All ranks of the data axis
  // call it together.
  double evaluate(std::span<const int32_t> ids, std::span<const int32_t> targets, MicroShape shape);
  // Inference: runs `ids` (one sequence of T new tokens behind `past` cached ones, or B sequences
  // without caches) and returns the logits [n, Vp] of the last n rows.
  Tensor logits(std::span<const int32_t> ids, MicroShape shape, int64_t past, int64_t count);

  const ExactSum& loss() const { return loss_; }
  Ops& ops() const { return ops_; }
  Tensor exact_sum() const { return exact_; }  // i64 [ExactSum::size] of scratch
  const std::vector<BlockDescription>& descriptions() const { return descriptions_; }
  static std::vector<BlockDescription> describe(const Ops& ops, const Model& model,
                                                const ExecutorSetup& setup);

 private:
  struct Slot {  // one micro-batch in flight
    Tensor ids, targets;
    std::vector<std::vector<Tensor>> saved;  // per block
    int micro = -1;
  };
  struct BlockBuffers {
    std::vector<Tensor> forward_scratch, pending, backward_scratch;
  };

  BlockRun start(Slot& slot, MicroShape shape, int micro) const;
  void forward_block(BlockRun& run, const Slot& slot, size_t block, int64_t past) const;
  void forward(const StepInputs& inputs, const Action& action);
  void backward(const StepInputs& inputs, const Action& action);
  void choose(BlockRun& run, const Slot& slot, size_t block, bool backward) const;
  void set_training(BlockRun& run, const StepInputs& inputs, int micro) const;
  void wait_parameters(const Action& action) const;
  void follow_stays(size_t action);
  Slot& slot_of(int micro);
  uint64_t workspace_bytes() const;
  void bind_training(Arena& arena);
  void bind_inference(Arena& arena);

  Ops& ops_;
  const Model& model_;
  ParamStore& store_;
  ExecutorSetup setup_;
  const StepPlan& plan_;
  std::vector<BlockDescription> descriptions_;
  std::vector<std::vector<int>> forward_reads_, backward_reads_;  // per block: parameters of blocks
  std::vector<Slot> slots_;
  std::vector<BlockBuffers> buffers_;
  std::vector<KvCache> caches_;
  Tensor gradient_[2], rope_, loss_sums_, exact_;
  std::vector<bool> forward_before_, backward_before_;  // per block, in this step
  std::vector<double> losses_;                          // per micro-batch
  size_t next_gradient_ = 0, next_gather_ = 0;          // stays to come
  ExactSum loss_;
};

}  // namespace rankine

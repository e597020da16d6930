#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "model/model.h"
#include "plan/step_plan.h"
#include "runtime/activation_tier.h"
#include "runtime/trouble.h"
#include "state/param_store.h"
#include "tensor/arena.h"

namespace rankine {

struct ExecutorSetup {
  MicroShape shape;  // largest micro-batch
  DType compute = DType::f32;
  Purpose purpose = Purpose::training;
  int64_t positions = 0;       // of the rotary table and the key/value caches
  int64_t sequences = 0;       // inference with key/value caches for as many; 0: without
  bool document_mask = false;  // attention stays within documents
};

// A sequence that continues what is in the caches.
struct CachedSequence {
  int64_t slot = 0;  // whose caches
  int64_t past = 0;  // tokens in them
};

// Whom an executor talks to during computations. All of it outlives the executor.
struct ExecutorRanks {
  Communicator* tensor = nullptr;
  Communicator* activations = nullptr;  // along the pipeline
  Communicator* gradients = nullptr;    // likewise
  int data_rank = 0, data_ranks = 1;
};

// What a step program works on, besides memory: all micro-batches of this rank, one behind another.
// Micro-batch m is number m * data ranks + data rank of the step.
struct StepInputs {
  std::span<const int32_t> ids, targets;     // [micros * B * T]; targets < 0 are ignored
  std::span<const int32_t> first_keys = {};  // likewise, AttentionShape's; with a document mask
  double gradient_scale = 1;                 // 1 / global number of valid tokens
  bool dynamic_scale = false;                // the loss scale of step_state() multiplies the loss
  uint64_t seed = 0, step = 0;
};

// Runs step programs over a model's blocks with memory from one arena; the order of work is the
// program's, nothing is decided here.
class Executor {
 public:
  // `plan` outlives the executor.
  Executor(Ops& ops, const Model& model, ParamStore& store, const ExecutorSetup& setup,
           const StepPlan& plan, int micros, const ExecutorRanks& ranks,
           const OffloadSetup& offload = {});

  void add_to(MemoryPlan& plan) const;
  void bind(Arena& device, Arena& host);
  // The file of saved activations, as TierFile describes it; "" without one.
  std::string disk_description() const { return tier_ ? tier_->description() : ""; }

  TierTraffic tier_traffic() const { return tier_ ? tier_->traffic() : TierTraffic{}; }

  // Runs the plan's actions in order; `update` is called at the update action, when all gradients
  // are on their way to their owners.
  void run(const StepInputs& inputs, const std::function<void()>& update);
  // Brings the sums of token losses in nats that this rank has seen in the last run(), one of each
  // micro-batch (0 on ranks without the head), once a mark of the queue has passed.
  void read_losses_later(double* losses) { ops_.read_later(loss_sums_, losses); }
  int micros() const { return micros_; }
  // The summed loss of one micro-batch without gradients or dropout. All ranks call it
  // together.
  double evaluate(std::span<const int32_t> ids, std::span<const int32_t> targets, MicroShape shape,
                  std::span<const int32_t> first_keys = {});
  // The losses of the first tokens of the micro-batch evaluated last, on a rank with the head.
  void token_losses(std::span<float> losses);
  // Inference: runs B sequences of T new tokens, each behind what its caches hold, or without
  // caches when `cached` is empty, and returns the logits [n, Vp] of the last n rows.
  Tensor logits(std::span<const int32_t> ids, MicroShape shape,
                std::span<const CachedSequence> cached, int64_t count);

  // Runs the plan like run(), without an update, and looks at everything that its computations
  // read and leave on this rank. All ranks call it together; gradients are lost.
  Trouble diagnose(const StepInputs& inputs);
  // The same of evaluate(), for inference.
  Trouble diagnose_evaluation(std::span<const int32_t> ids, std::span<const int32_t> targets,
                              MicroShape shape);

  Ops& ops() const { return ops_; }
  Tensor exact_sum() const { return exact_; }  // i64 [ExactSum::size], where the optimizer works
  // u8 [sizeof StepState]: the device's, and where the optimizer works, which may be the same.
  Tensor step_state() const { return step_state_; }
  Tensor optimizer_state() const { return optimizer_state_; }
  const std::vector<BlockDescription>& descriptions() const { return descriptions_; }
  static std::vector<BlockDescription> describe(const Ops& ops, const Model& model,
                                                const ExecutorSetup& setup);

 private:
  // Where a block's tensors of one micro-batch lie, whenever they are there.
  struct Place {
    std::vector<Tensor> saved_in_forward, saved;  // with what is recomputed; saved: in the backward
    std::vector<Tensor> pending;
    Tensor output, input_gradient, output_gradient;
    ActivationTier::Pieces pieces;  // of what leaves for its tier meanwhile
  };
  struct BlockBuffers {
    std::vector<Tensor> forward_scratch, backward_scratch;
  };

  Place& place(size_t block, int micro) {
    return places_[static_cast<size_t>(micro) * descriptions_.size() + block];
  }
  BlockRun start(MicroShape shape, int micro) const;
  BlockRun start_training(const StepInputs& inputs, int micro) const;
  void choose(BlockRun& run, size_t block, int micro, bool backward);
  void forward_block(BlockRun& run, size_t block, int micro);
  void choose_caches(BlockRun& run, size_t block, std::span<const CachedSequence> cached);
  void forward(const StepInputs& inputs, const Action& action);
  void recompute(const StepInputs& inputs, const Action& action);
  void backward(const StepInputs& inputs, const Action& action);
  Work transfer(const Action& action);
  int peer_of(int stage) const;
  void lead_parameters(const std::vector<int>& blocks) const;
  void follow(const std::vector<int>& earlier);
  void move_states(const Action& action);
  void follow_gradients(size_t action);
  void follow_gathers(const std::vector<Stay>& gathers, size_t action);
  // A computation's tensors that are looked at together.
  struct Watched {
    size_t block;
    int64_t place, micro;  // as Trouble's
  };
  int64_t global_block(size_t block) const;
  int64_t global_micro(int micro) const {
    return int64_t{micro} * ranks_.data_ranks + ranks_.data_rank;
  }
  void watch(const Watched& at, const Tensor& tensor, std::string name);
  void watch_parameters(const Watched& at, std::span<const Tensor> tensors, const char* what);
  void watch_forward(size_t block, int micro);
  void watch_backward(const Action& action);
  Tensor watched_rows(const Tensor& out) const;
  Tier exact_tier() const;
  uint64_t workspace_bytes() const;
  bool takes(bool targets) const;
  uint64_t saved_bytes() const;
  void bind_training(Arena& arena, Arena& host);
  void bind_saved(const std::vector<Stay>& stays, const Tensor& pool);
  void bind_passing(const std::vector<Stay>& stays, const Tensor& pool);
  void bind_pieces(const Tensor& saved_pool);
  void bind_inference(Arena& arena);

  Ops& ops_;
  const Model& model_;
  ParamStore& store_;
  ExecutorSetup setup_;
  const StepPlan& plan_;
  ExecutorRanks ranks_;
  TensorRegion region_;
  int micros_;
  std::vector<BlockDescription> descriptions_;
  std::vector<bool> hands_on_;  // per block: to the next one of this rank
  // Per block: the blocks whose parameters it reads.
  std::vector<std::vector<int>> forward_reads_, backward_reads_, evaluation_reads_;
  std::vector<Place> places_;  // [micro][block]
  std::vector<BlockBuffers> buffers_;
  std::vector<KvCache> caches_;       // [layer][slot]
  std::vector<KvCache> used_caches_;  // of the current call and block
  Tensor ids_, targets_, first_keys_, rope_, loss_sums_, exact_, step_state_, optimizer_state_;
  std::vector<bool> backward_before_;           // per block, in this step
  std::vector<double> losses_;                  // per micro-batch
  std::vector<Work> works_;                     // per action: its transfer
  std::vector<std::vector<TierWork>> copies_;   // per action: its STORE or FETCH
  std::unique_ptr<ActivationTier> tier_;        // null: what is saved stays
  size_t next_gradient_ = 0, next_gather_ = 0;  // stays to come
  Trouble* trouble_ = nullptr;                  // while someone looks for it
  int64_t watched_ = 0;  // rows of a block's output that are looked at; 0: all
};

}  // namespace rankine

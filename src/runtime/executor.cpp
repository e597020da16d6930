#include "runtime/executor.h"

#include <algorithm>

#include "model/lm_head.h"

namespace rankine {

Executor::Executor(Ops& ops, const Model& model, ParamStore& store, const ExecutorSetup& setup,
                   const StepPlan& plan, int micros, const ExecutorRanks& ranks,
                   const OffloadSetup& offload)
    : ops_(ops),
      model_(model),
      store_(store),
      setup_(setup),
      plan_(plan),
      ranks_(ranks),
      region_(model.part.split, ranks.tensor, ops.queue()),
      micros_(setup.purpose == Purpose::training ? micros : 1),
      descriptions_(describe(ops, model, setup)),
      hands_on_(descriptions_.size()),
      backward_before_(descriptions_.size()),
      losses_(static_cast<size_t>(micros_)),
      works_(std::max(plan.program.size(), plan.evaluation.size())),
      copies_(works_.size()),
      tier_(plan.stored_bytes > 0 ? std::make_unique<ActivationTier>(offload, plan.stored_bytes)
                                  : nullptr) {
  for (int b = 0; b < static_cast<int>(plan.traits.size()); ++b) {
    forward_reads_.push_back(parameters_read({0, ActionKind::forward, 0, b}, plan.traits));
    backward_reads_.push_back(parameters_read({0, ActionKind::backward, 0, b}, plan.traits));
    std::vector<BlockTraits> evaluating = plan.traits;
    evaluating[static_cast<size_t>(b)].forward_reads_parameters = true;
    evaluation_reads_.push_back(parameters_read({0, ActionKind::forward, 0, b}, evaluating));
  }
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const StageBlocks& stage = plan.stages[s];
    const auto last = static_cast<size_t>(stage.first + stage.count - 1);
    for (auto b = static_cast<size_t>(stage.first); b < last; ++b) hands_on_[b] = true;
    hands_on_[last] = s + 1 < plan.stages.size() && plan.stages[s + 1].stage == stage.stage + 1;
  }
}

// ---- computations

BlockRun Executor::start(MicroShape shape, int micro) const {
  expect(shape.rows() <= setup_.shape.rows(), "a micro-batch fits the plan");
  const int64_t first = micro * setup_.shape.rows();
  return {.ops = ops_,
          .shape = shape,
          .params = {},
          .grads = {},
          .saved = {},
          .pending = {},
          .scratch = {},
          .region = region_,
          .ids = takes(false) ? ids_.range(first, shape.rows()) : Tensor{},
          .targets = takes(true) ? targets_.range(first, shape.rows()) : Tensor{},
          .first_keys = setup_.document_mask ? first_keys_.range(first, shape.rows()) : Tensor{},
          .rope_table = rope_,
          .loss = loss_sums_.range(micro, 1)};
}

BlockRun Executor::start_training(const StepInputs& inputs, int micro) const {
  BlockRun run = start(setup_.shape, micro);
  run.training = true;
  run.gradient_scale = static_cast<float>(inputs.gradient_scale);
  if (inputs.dynamic_scale) run.step_state = step_state_;
  run.seed = inputs.seed;
  run.dropout_stream =
      (inputs.step << 16) + static_cast<uint64_t>(micro * ranks_.data_ranks + ranks_.data_rank);
  return run;
}

void Executor::choose(BlockRun& run, size_t block, int micro, bool backward) {
  run.params = store_.params(block);
  run.grads = store_.grads(block);
  run.saved = backward ? place(block, micro).saved : place(block, micro).saved_in_forward;
  run.pending = place(block, micro).pending;
  run.scratch = backward ? buffers_[block].backward_scratch : buffers_[block].forward_scratch;
}

// Each block writes straight into the next one's saved input, or what is sent.
void Executor::forward_block(BlockRun& run, size_t block, int micro) {
  choose(run, block, micro, false);
  model_.blocks[block]->forward(run, hands_on_[block] ? place(block + 1, micro).saved_in_forward[0]
                                                      : place(block, micro).output);
}

// The embedding needs to know only how much there is.
void Executor::choose_caches(BlockRun& run, size_t block, std::span<const CachedSequence> cached) {
  const auto slots = static_cast<size_t>(setup_.sequences);
  used_caches_.clear();
  for (const CachedSequence& sequence : cached) {
    const bool layer = block > 0 && block <= static_cast<size_t>(model_.config.layers);
    used_caches_.push_back(layer ? caches_[(block - 1) * slots + static_cast<size_t>(sequence.slot)]
                                 : KvCache{});
    used_caches_.back().past = sequence.past;
  }
  run.caches = used_caches_;
}

void Executor::forward(const StepInputs& inputs, const Action& action) {
  BlockRun run = start_training(inputs, action.micro);
  forward_block(run, static_cast<size_t>(action.block), action.micro);
}

void Executor::recompute(const StepInputs& inputs, const Action& action) {
  const auto b = static_cast<size_t>(action.block);
  BlockRun run = start_training(inputs, action.micro);
  choose(run, b, action.micro, false);
  run.saved = place(b, action.micro).saved;
  model_.blocks[b]->recompute(run);
}

void Executor::backward(const StepInputs& inputs, const Action& action) {
  const auto b = static_cast<size_t>(action.block);
  BlockRun run = start_training(inputs, action.micro);
  run.accumulate = plan_.gradients.empty() && backward_before_[b];
  choose(run, b, action.micro, true);
  const Tensor dy = hands_on_[b] ? place(b + 1, action.micro).input_gradient
                                 : place(b, action.micro).output_gradient;
  const Tensor dx = place(b, action.micro).input_gradient;
  const Block& block = *model_.blocks[b];
  if (action.kind == ActionKind::backward_input) return block.backward_input(run, dy, dx);
  if (action.kind == ActionKind::backward_weight)
    block.backward_weight(run, dy);
  else
    block.backward(run, dy, dx);
  backward_before_[b] = true;
}

void Executor::lead_parameters(const std::vector<int>& blocks) const {
  for (const int block : blocks) store_.lead_parameters(static_cast<size_t>(block));
}

// ---- transfers

int Executor::peer_of(int stage) const {
  return plan_.rank_of_stage[static_cast<size_t>(stage)];
}

Work Executor::transfer(const Action& action) {
  const auto stage = std::ranges::find(plan_.stages, action.stage, &StageBlocks::stage);
  const auto first = static_cast<size_t>(stage->first);
  const size_t last = first + static_cast<size_t>(stage->count) - 1;
  constexpr const char *forwards = "activation", *backwards = "activation gradient";
  switch (action.kind) {
    case ActionKind::send_activation:
      return ranks_.activations->send(place(last, action.micro).output, peer_of(action.stage + 1),
                                      forwards);
    case ActionKind::receive_activation:
      return ranks_.activations->receive(place(first, action.micro).saved_in_forward[0],
                                         peer_of(action.stage - 1), forwards);
    case ActionKind::send_gradient:
      return ranks_.gradients->send(place(first, action.micro).input_gradient,
                                    peer_of(action.stage - 1), backwards);
    default:
      return ranks_.gradients->receive(place(last, action.micro).output_gradient,
                                       peer_of(action.stage + 1), backwards);
  }
}

// ---- programs

// Gives the blocks whose gradients are first written by this action their memory.
void Executor::follow_gradients(size_t action) {
  for (; next_gradient_ < plan_.gradients.size() &&
         plan_.gradients[next_gradient_].first == static_cast<int>(action);
       ++next_gradient_) {
    const Stay& stay = plan_.gradients[next_gradient_];
    store_.begin_gradients(static_cast<size_t>(stay.block), stay.offset);
  }
}

// Gives a block whose parameters come with this action their memory.
void Executor::follow_gathers(const std::vector<Stay>& gathers, size_t action) {
  if (next_gather_ == gathers.size() || gathers[next_gather_].first != static_cast<int>(action))
    return;
  const Stay& stay = gathers[next_gather_++];
  store_.begin_parameters(static_cast<size_t>(stay.block), stay.offset);
}

void Executor::move_states(const Action& action) {
  const auto block = static_cast<size_t>(action.block);
  switch (action.kind) {
    case ActionKind::load:
      return store_.load(block);
    case ActionKind::gather:
      return store_.gather(block);
    case ActionKind::release:
      return store_.release(block);
    case ActionKind::reduce:
      return store_.reduce(block);
    default:
      return store_.refresh(block);
  }
}

// The computations to come run behind what earlier actions have started.
void Executor::follow(const std::vector<int>& earlier) {
  for (const int index : earlier) {
    works_[static_cast<size_t>(index)].lead(ops_.queue());
    for (TierWork& copy : copies_[static_cast<size_t>(index)]) copy.lead(ops_.queue());
  }
}

void Executor::run(const StepInputs& inputs, const std::function<void()>& update) {
  ops_.fill(loss_sums_, 0);
  if (takes(false)) ops_.upload(inputs.ids.data(), ids_);
  if (takes(true)) ops_.upload(inputs.targets.data(), targets_);
  if (setup_.document_mask) ops_.upload(inputs.first_keys.data(), first_keys_);
  backward_before_.assign(backward_before_.size(), false);
  next_gradient_ = next_gather_ = 0;
  for (size_t i = 0; i < plan_.program.size(); ++i) {
    const Action& action = plan_.program[i];
    const auto block = static_cast<size_t>(action.block);
    follow(plan_.waits[i]);
    follow_gradients(i);
    follow_gathers(plan_.gathers, i);
    switch (action.kind) {
      case ActionKind::forward:
        lead_parameters(forward_reads_[block]);
        forward(inputs, action);
        if (trouble_ != nullptr) watch_forward(block, action.micro);
        break;
      case ActionKind::recompute:
        lead_parameters(backward_reads_[block]);
        recompute(inputs, action);
        break;
      case ActionKind::backward:
      case ActionKind::backward_input:
      case ActionKind::backward_weight:
        lead_parameters(backward_reads_[block]);
        backward(inputs, action);
        if (trouble_ != nullptr) watch_backward(action);
        break;
      case ActionKind::update:
        store_.finish_reductions();
        update();
        break;
      case ActionKind::load:
      case ActionKind::gather:
      case ActionKind::release:
      case ActionKind::reduce:
      case ActionKind::refresh:
        move_states(action);
        break;
      case ActionKind::send_activation:
      case ActionKind::receive_activation:
      case ActionKind::send_gradient:
      case ActionKind::receive_gradient:
        works_[i] = transfer(action);
        break;
      case ActionKind::store:
        tier_->store(place(block, action.micro).pieces, copies_[i]);
        break;
      case ActionKind::fetch:
        tier_->fetch(place(block, action.micro).pieces, copies_[i]);
        break;
    }
  }
}

double Executor::evaluate(std::span<const int32_t> ids, std::span<const int32_t> targets,
                          MicroShape shape, std::span<const int32_t> first_keys) {
  const BlockRun begin = start(shape, 0);
  if (takes(false)) ops_.upload(ids.data(), begin.ids);
  if (takes(true)) ops_.upload(targets.data(), begin.targets);
  if (setup_.document_mask) ops_.upload(first_keys.data(), begin.first_keys);
  ops_.fill(loss_sums_, 0);
  next_gather_ = 0;
  for (size_t i = 0; i < plan_.evaluation.size(); ++i) {
    const Action& action = plan_.evaluation[i];
    follow_gathers(plan_.evaluation_gathers, i);
    switch (action.kind) {
      case ActionKind::forward: {
        const auto b = static_cast<size_t>(action.block);
        for (size_t j = 0; j < i; ++j)
          if (plan_.evaluation[j].kind == ActionKind::receive_activation &&
              plan_.evaluation[j].stage == action.stage)
            works_[j].lead(ops_.queue());
        lead_parameters(evaluation_reads_[b]);
        BlockRun run = begin;
        forward_block(run, b, 0);
        if (trouble_ != nullptr) watch_forward(b, 0);
        break;
      }
      case ActionKind::load:
      case ActionKind::gather:
      case ActionKind::release:
        move_states(action);
        break;
      default:
        works_[i] = transfer(action);
    }
  }
  for (Work& work : works_) work.lead(ops_.queue());
  ops_.download(loss_sums_, losses_.data());
  return losses_[0];
}

void Executor::token_losses(std::span<float> losses) {
  BlockRun run = start({1, static_cast<int64_t>(losses.size())}, 0);
  choose(run, model_.blocks.size() - 1, 0, false);
  ops_.download(model_.head().token_losses(run), losses.data());
}

Tensor Executor::logits(std::span<const int32_t> ids, MicroShape shape,
                        std::span<const CachedSequence> cached, int64_t count) {
  expect(cached.empty() || static_cast<int64_t>(cached.size()) == shape.batch,
         "caches for every sequence");
  for (const CachedSequence& sequence : cached)
    expect(sequence.slot < setup_.sequences && sequence.past + shape.tokens <= setup_.positions,
           "cached tokens fit their cache");
  BlockRun run = start(shape, 0);
  ops_.upload(ids.data(), run.ids);
  const size_t head = model_.blocks.size() - 1;
  for (size_t b = 0; b <= head; ++b) {
    choose_caches(run, b, cached);
    if (b < head) forward_block(run, b, 0);
  }
  choose(run, head, 0, false);
  return model_.head().logits(run, shape.rows() - count, count);
}

}  // namespace rankine

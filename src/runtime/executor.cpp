#include "runtime/executor.h"

#include <algorithm>

namespace rankine {

Executor::Executor(Ops& ops, const Model& model, ParamStore& store, const ExecutorSetup& setup,
                   const StepPlan& plan, int micros, int in_flight)
    : ops_(ops),
      model_(model),
      store_(store),
      setup_(setup),
      plan_(plan),
      descriptions_(describe(ops, model, setup)),
      slots_(static_cast<size_t>(in_flight)),
      forward_before_(descriptions_.size()),
      backward_before_(descriptions_.size()),
      losses_(static_cast<size_t>(micros)) {
  for (int b = 0; b < static_cast<int>(plan.traits.size()); ++b) {
    forward_reads_.push_back(parameters_read({0, ActionKind::forward, 0, b}, plan.traits));
    backward_reads_.push_back(parameters_read({0, ActionKind::backward, 0, b}, plan.traits));
  }
}

BlockRun Executor::start(Slot& slot, MicroShape shape, int micro) const {
  expect(shape.rows() <= setup_.shape.rows(), "a micro-batch fits the plan");
  BlockRun run{.ops = ops_,
               .shape = shape,
               .params = {},
               .grads = {},
               .saved = {},
               .pending = {},
               .scratch = {},
               .ids = slot.ids.range(0, shape.rows()),
               .targets = slot.targets.range(0, shape.rows()),
               .rope_table = rope_,
               .loss = loss_sums_.range(micro, 1)};
  return run;
}

void Executor::choose(BlockRun& run, const Slot& slot, size_t block, bool backward) const {
  run.params = store_.params(block);
  run.grads = store_.grads(block);
  run.saved = slot.saved[block];
  run.pending = buffers_[block].pending;
  run.scratch = backward ? buffers_[block].backward_scratch : buffers_[block].forward_scratch;
}

// Each block writes straight into the next one's saved input.
void Executor::forward_block(BlockRun& run, const Slot& slot, size_t block, int64_t past) const {
  choose(run, slot, block, false);
  const bool last = block + 1 == model_.blocks.size();
  KvCache cache = setup_.cached && block > 0 && !last ? caches_[block - 1] : KvCache{};
  cache.past = past;
  run.cache = setup_.cached ? &cache : nullptr;
  model_.blocks[block]->forward(run, last ? Tensor{} : slot.saved[block + 1][0]);
  run.cache = nullptr;
}

Executor::Slot& Executor::slot_of(int micro) {
  const auto found = std::find_if(slots_.begin(), slots_.end(),
                                  [&](const Slot& slot) { return slot.micro == micro; });
  expect(found != slots_.end(), "a slot for the micro-batch");
  return *found;
}

void Executor::set_training(BlockRun& run, const StepInputs& inputs, int micro) const {
  run.training = true;
  run.gradient_scale = static_cast<float>(inputs.gradient_scale);
  run.seed = inputs.seed;
  run.dropout_stream =
      (inputs.step << 16) + static_cast<uint64_t>(micro * inputs.ranks + inputs.rank);
}

void Executor::forward(const StepInputs& inputs, const Action& action) {
  const auto block = static_cast<size_t>(action.block);
  Slot& slot = slot_of(block == 0 ? -1 : action.micro);
  if (block == 0) {
    const auto rows = static_cast<size_t>(setup_.shape.rows());
    const size_t first = static_cast<size_t>(action.micro) * rows;
    slot.micro = action.micro;
    ops_.upload(inputs.ids.subspan(first, rows).data(), slot.ids);
    ops_.upload(inputs.targets.subspan(first, rows).data(), slot.targets);
  }
  BlockRun run = start(slot, setup_.shape, action.micro);
  set_training(run, inputs, action.micro);
  run.accumulate = plan_.gradients.empty() && forward_before_[block];
  forward_block(run, slot, block, 0);
  forward_before_[block] = true;
}

void Executor::backward(const StepInputs& inputs, const Action& action) {
  const auto b = static_cast<size_t>(action.block);
  Slot& slot = slot_of(action.micro);
  BlockRun run = start(slot, setup_.shape, action.micro);
  set_training(run, inputs, action.micro);
  run.accumulate = plan_.gradients.empty() && backward_before_[b];
  const Tensor dy = gradient_[(b + 1) % 2], dx = gradient_[b % 2];
  choose(run, slot, b, true);
  model_.blocks[b]->backward_input(run, dy, dx);
  model_.blocks[b]->backward_weight(run, dy);
  backward_before_[b] = true;
  if (b == 0) slot.micro = -1;
}

void Executor::wait_parameters(const Action& action) const {
  const auto& reads = action.kind == ActionKind::forward ? forward_reads_ : backward_reads_;
  for (const int block : reads[static_cast<size_t>(action.block)])
    store_.wait_parameters(static_cast<size_t>(block));
}

// Gives the blocks whose gradients are first written by this action their memory.
void Executor::follow_stays(size_t action) {
  for (; next_gradient_ < plan_.gradients.size() &&
         plan_.gradients[next_gradient_].first == static_cast<int>(action);
       ++next_gradient_) {
    const Stay& stay = plan_.gradients[next_gradient_];
    store_.begin_gradients(static_cast<size_t>(stay.block), stay.offset);
  }
}

void Executor::run(const StepInputs& inputs, const std::function<void()>& update) {
  ops_.fill(loss_sums_, 0);
  forward_before_.assign(forward_before_.size(), false);
  backward_before_.assign(backward_before_.size(), false);
  next_gradient_ = next_gather_ = 0;
  for (size_t i = 0; i < plan_.program.size(); ++i) {
    const Action& action = plan_.program[i];
    const auto block = static_cast<size_t>(action.block);
    follow_stays(i);
    switch (action.kind) {
      case ActionKind::forward:
        wait_parameters(action);
        forward(inputs, action);
        break;
      case ActionKind::backward:
        wait_parameters(action);
        backward(inputs, action);
        break;
      case ActionKind::update:
        store_.finish_reductions();
        update();
        break;
      case ActionKind::gather:
        store_.gather(block, plan_.gathers[next_gather_++].offset);
        break;
      case ActionKind::release:
        store_.release(block);
        break;
      case ActionKind::reduce:
        store_.reduce(block);
        break;
      case ActionKind::refresh:
        store_.refresh(block);
        break;
      default:
        fail(ErrorKind::internal, "the executor knows no action {}", to_string(action));
    }
  }
  ops_.download(loss_sums_, losses_.data());
  loss_ = {};
  for (const double loss : losses_) loss_.add(loss);
}

double Executor::evaluate(std::span<const int32_t> ids, std::span<const int32_t> targets,
                          MicroShape shape) {
  Slot& slot = slot_of(-1);
  BlockRun run = start(slot, shape, 0);
  ops_.upload(ids.data(), run.ids);
  ops_.upload(targets.data(), run.targets);
  ops_.fill(loss_sums_, 0);
  next_gather_ = 0;
  for (const Action& action : plan_.evaluation) switch (action.kind) {
      case ActionKind::forward:
        wait_parameters(action);
        forward_block(run, slot, static_cast<size_t>(action.block), 0);
        break;
      case ActionKind::gather:
        store_.gather(static_cast<size_t>(action.block),
                      plan_.evaluation_gathers[next_gather_++].offset);
        break;
      default:
        store_.release(static_cast<size_t>(action.block));
    }
  ops_.download(loss_sums_, losses_.data());
  return losses_[0];
}

Tensor Executor::logits(std::span<const int32_t> ids, MicroShape shape, int64_t past,
                        int64_t count) {
  expect(!setup_.cached || (shape.batch == 1 && past + shape.tokens <= setup_.positions),
         "cached tokens fit their cache");
  Slot& slot = slots_[0];
  BlockRun run = start(slot, shape, 0);
  ops_.upload(ids.data(), run.ids);
  const size_t head = model_.blocks.size() - 1;
  for (size_t b = 0; b < head; ++b) forward_block(run, slot, b, past);
  choose(run, slot, head, false);
  return model_.head().logits(run, shape.rows() - count, count);
}

}  // namespace rankine

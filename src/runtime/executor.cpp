#include "runtime/executor.h"

#include <algorithm>

namespace rankine {

Executor::Executor(Ops& ops, const Model& model, ParamStore& store, const ExecutorSetup& setup,
                   int in_flight)
    : ops_(ops),
      model_(model),
      store_(store),
      setup_(setup),
      descriptions_(describe(ops, model, setup)),
      slots_(static_cast<size_t>(in_flight)) {}

BlockRun Executor::start(Slot& slot, MicroShape shape) const {
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
               .loss = loss_sum_};
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
void Executor::forward_blocks(BlockRun& run, const Slot& slot, size_t count, int64_t past) const {
  for (size_t b = 0; b < count; ++b) {
    choose(run, slot, b, false);
    const bool layer = b > 0 && b + 1 < model_.blocks.size();
    KvCache cache = setup_.cached && layer ? caches_[b - 1] : KvCache{};
    cache.past = past;
    run.cache = setup_.cached ? &cache : nullptr;
    const bool last = b + 1 == model_.blocks.size();
    model_.blocks[b]->forward(run, last ? Tensor{} : slot.saved[b + 1][0]);
    run.cache = nullptr;
  }
}

Executor::Slot& Executor::slot_of(int micro) {
  const auto found = std::find_if(slots_.begin(), slots_.end(),
                                  [&](const Slot& slot) { return slot.micro == micro; });
  expect(found != slots_.end(), "a slot for the micro-batch");
  return *found;
}

void Executor::forward(const StepInputs& inputs, int micro, Slot& slot) {
  const auto rows = static_cast<size_t>(setup_.shape.rows());
  slot.micro = micro;
  ops_.upload(inputs.ids.subspan(static_cast<size_t>(micro) * rows, rows).data(), slot.ids);
  ops_.upload(inputs.targets.subspan(static_cast<size_t>(micro) * rows, rows).data(), slot.targets);
  BlockRun run = start(slot, setup_.shape);
  run.training = true;
  run.accumulate = forward_before_;
  run.gradient_scale = static_cast<float>(inputs.gradient_scale);
  run.seed = inputs.seed;
  run.dropout_stream = (inputs.step << 16) + static_cast<uint64_t>(micro);
  forward_blocks(run, slot, model_.blocks.size(), 0);
  forward_before_ = true;
}

void Executor::backward(const StepInputs& inputs, int micro, Slot& slot) {
  BlockRun run = start(slot, setup_.shape);
  run.training = true;
  run.accumulate = backward_before_;
  run.seed = inputs.seed;
  run.dropout_stream = (inputs.step << 16) + static_cast<uint64_t>(micro);
  for (size_t b = model_.blocks.size(); b-- > 0;) {
    const Tensor dy = gradient_[(b + 1) % 2], dx = gradient_[b % 2];
    choose(run, slot, b, true);
    model_.blocks[b]->backward_input(run, dy, dx);
    model_.blocks[b]->backward_weight(run, dy);
  }
  slot.micro = -1;
  backward_before_ = true;
}

void Executor::run(const Program& program, const StepInputs& inputs,
                   const std::function<void()>& update) {
  ops_.fill(loss_sum_, 0);
  forward_before_ = backward_before_ = false;
  for (const Action& action : program) switch (action.kind) {
      case ActionKind::forward:
        forward(inputs, action.micro, slot_of(-1));
        break;
      case ActionKind::backward:
        backward(inputs, action.micro, slot_of(action.micro));
        break;
      case ActionKind::update:
        update();
        break;
    }
  loss_ = read_loss();
}

double Executor::read_loss() {
  double sum = 0;
  ops_.download(loss_sum_, &sum);
  return sum;
}

double Executor::evaluate(std::span<const int32_t> ids, std::span<const int32_t> targets,
                          MicroShape shape) {
  Slot& slot = slot_of(-1);
  BlockRun run = start(slot, shape);
  ops_.upload(ids.data(), run.ids);
  ops_.upload(targets.data(), run.targets);
  ops_.fill(loss_sum_, 0);
  forward_blocks(run, slot, model_.blocks.size(), 0);
  return read_loss();
}

Tensor Executor::logits(std::span<const int32_t> ids, MicroShape shape, int64_t past,
                        int64_t count) {
  expect(!setup_.cached || (shape.batch == 1 && past + shape.tokens <= setup_.positions),
         "cached tokens fit their cache");
  Slot& slot = slots_[0];
  BlockRun run = start(slot, shape);
  ops_.upload(ids.data(), run.ids);
  const size_t head = model_.blocks.size() - 1;
  forward_blocks(run, slot, head, past);
  choose(run, slot, head, false);
  return model_.head().logits(run, shape.rows() - count, count);
}

}  // namespace rankine

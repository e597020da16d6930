#include <algorithm>

#include "runtime/executor.h"

// Looking at what computations read and leave, for the first values that are not finite.
namespace rankine {
namespace {

bool is_float(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16;
}

}  // namespace

std::string to_string(const Trouble& t) {
  return fmt::format("block {}, {}{}: {} of {} values {} not finite, the first is {}", t.block,
                     t.tensor, t.micro < 0 ? "" : fmt::format(" of micro-batch {}", t.micro),
                     t.found.count, t.elements, t.found.count == 1 ? "is" : "are", t.found.value);
}

// Among all blocks of the model.
int64_t Executor::global_block(size_t block) const {
  for (size_t s = 0; s < plan_.stages.size(); ++s) {
    const int64_t within = static_cast<int64_t>(block) - plan_.stages[s].first;
    if (0 <= within && within < plan_.stages[s].count) return model_.part.stages[s].first + within;
  }
  fail(ErrorKind::internal, "block {} belongs to no stage", block);
}

// Notes `tensor` when it is the first so far that is not finite.
void Executor::watch(const Watched& at, const Tensor& tensor, std::string name) {
  constexpr int64_t chunk = 1 << 16;
  if (tensor.empty() || !is_float(tensor.dtype)) return;
  if (trouble_->arose() && trouble_->place <= at.place) return;
  Trouble found{
      at.place, descriptions_[at.block].name, std::move(name), at.micro, tensor.elements(), {}};
  std::vector<char> buffer;
  for (int64_t first = 0; first < tensor.elements(); first += chunk) {
    const Tensor part = tensor.range(first, std::min(chunk, tensor.elements() - first));
    buffer.resize(static_cast<size_t>(part.bytes()));
    ops_.download(part, buffer.data());
    const NonFinite some = find_non_finite(buffer.data(), part.dtype, part.elements());
    if (found.found.count == 0 && some.count > 0) found.found = {0, first + some.first, some.value};
    found.found.count += some.count;
  }
  if (found.found.count > 0) *trouble_ = std::move(found);
}

void Executor::watch_parameters(const Watched& at, std::span<const Tensor> tensors,
                                const char* what) {
  const ParamLayout& layout = store_.layout();
  const std::vector<size_t>& groups = layout.blocks()[at.block].groups;
  for (size_t i = 0; i < tensors.size(); ++i)
    watch(at, tensors[i], fmt::format("the {} '{}'", what, layout.groups()[groups[i]].spec.name));
}

void Executor::watch_forward(size_t block, int micro) {
  const BlockDescription& d = descriptions_[block];
  const bool training = setup_.purpose == Purpose::training;
  const Watched weights{block, 4 * global_block(block), -1};
  if (d.forward_reads_parameters || !training)
    watch_parameters(weights, store_.params(block), "weight");
  const Place& at = place(block, micro);
  const Watched values{block, weights.place + 1, global_micro(micro)};
  for (size_t i = 1; i < at.saved_in_forward.size(); ++i) {
    const size_t kept = d.saved.size();
    const TensorSpec& spec = i < kept ? d.saved[i] : d.recomputed[i - kept];
    // Without a backward this is scratch, of which not all need be used.
    if (training)
      watch(values, at.saved_in_forward[i], fmt::format("the activation '{}'", spec.name));
  }
  if (d.name == "head") return training ? void() : watch(values, loss_sums_, "the loss");
  const Tensor out = hands_on_[block] ? place(block + 1, micro).saved_in_forward[0] : at.output;
  watch(values, watched_rows(out), "the activation 'output'");
}

// What a shorter micro-batch than the largest has written.
Tensor Executor::watched_rows(const Tensor& out) const {
  return out.empty() || watched_ == 0 ? out : out.rows(0, watched_);
}

void Executor::watch_backward(const Action& action) {
  const auto block = static_cast<size_t>(action.block);
  const int64_t blocks = Model::block_count(model_.config), number = global_block(block);
  if (descriptions_[block].name == "head") {
    watch_parameters({block, 4 * number, -1}, store_.params(block), "weight");
    watch({block, 4 * number + 1, global_micro(action.micro)}, loss_sums_.range(action.micro, 1),
          "the loss");
  }
  const int64_t from = 4 * blocks + 2 * (blocks - 1 - number);
  if (action.kind != ActionKind::backward_weight && number > 0)
    watch({block, from, global_micro(action.micro)}, place(block, action.micro).input_gradient,
          "the gradient of its input");
  if (action.kind != ActionKind::backward_input || !descriptions_[block].splits_backward)
    watch_parameters({block, from + 1, global_micro(action.micro)}, store_.grads(block),
                     "gradient of the weight");
}

Trouble Executor::diagnose(const StepInputs& inputs) {
  Trouble found;
  trouble_ = &found;
  watched_ = 0;
  run(inputs, [] {});
  trouble_ = nullptr;
  return found;
}

Trouble Executor::diagnose_evaluation(std::span<const int32_t> ids,
                                      std::span<const int32_t> targets, MicroShape shape) {
  Trouble found;
  trouble_ = &found;
  watched_ = shape.rows();
  evaluate(ids, targets, shape);
  trouble_ = nullptr;
  return found;
}

}  // namespace rankine

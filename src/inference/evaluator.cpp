#include "inference/evaluator.h"

#include <algorithm>
#include <cmath>

namespace rankine {

ExecutorSetup evaluation_setup(DType compute, const Evaluator::Setup& setup) {
  return {.shape = {setup.rows, setup.context},
          .compute = compute,
          .purpose = Purpose::inference,
          .positions = setup.context};
}

Evaluator::Evaluator(Engine& engine, const Setup& setup, Name name)
    : engine_(engine),
      setup_(setup),
      name_(std::move(name)),
      waiting_ids_(static_cast<size_t>(setup.rows * setup.context)),
      waiting_targets_(waiting_ids_.size()),
      losses_(waiting_ids_.size()) {
  expect(0 < setup.stride && setup.stride <= setup.context, "a stride of at most the context");
}

size_t Evaluator::add(std::span<const int32_t> ids) {
  const size_t document = documents_.size();
  documents_.push_back({std::max<int64_t>(0, static_cast<int64_t>(ids.size()) - 1), 0});
  const int64_t targets = documents_.back().tokens;
  int64_t scored = 0;
  for (int64_t begin = 0; scored < targets; begin += setup_.stride) {
    const int64_t end = std::min(begin + setup_.context, targets);
    add_window(document,
               ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin + 1)),
               scored - begin);
    scored = end;
  }
  return document;
}

void Evaluator::add_window(size_t document, std::span<const int32_t> ids, int64_t scored_before) {
  const auto length = static_cast<int64_t>(ids.size()) - 1;
  const auto at = static_cast<std::ptrdiff_t>(windows_.size()) * setup_.context;
  std::copy(ids.begin(), ids.end() - 1, waiting_ids_.begin() + at);
  std::copy(ids.begin() + 1, ids.end(), waiting_targets_.begin() + at);
  std::fill_n(waiting_targets_.begin() + at, scored_before, -1);
  windows_.push_back({document, length});
  if (static_cast<int64_t>(windows_.size()) == setup_.rows) compute();
}

// Rows are as long as the longest window; what is behind the others counts for nothing, nor does
// any token before it see it.
void Evaluator::compute() {
  if (windows_.empty()) return;
  int64_t longest = 0;
  for (const Window& window : windows_) longest = std::max(longest, window.length);
  const auto rows = static_cast<int64_t>(windows_.size());
  ids_.assign(static_cast<size_t>(rows * longest), 0);
  targets_.assign(ids_.size(), -1);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t length = windows_[static_cast<size_t>(r)].length;
    std::copy_n(waiting_ids_.begin() + r * setup_.context, length, ids_.begin() + r * longest);
    std::copy_n(waiting_targets_.begin() + r * setup_.context, length,
                targets_.begin() + r * longest);
  }
  engine_.executor().evaluate(ids_, targets_, {rows, longest});
  engine_.executor().token_losses(std::span(losses_).first(ids_.size()));
  for (int64_t r = 0; r < rows; ++r) {
    Document& document = documents_[windows_[static_cast<size_t>(r)].document];
    for (int64_t t = r * longest; t < (r + 1) * longest; ++t)
      document.loss += losses_[static_cast<size_t>(t)];
    if (!std::isfinite(document.loss)) refuse(windows_[static_cast<size_t>(r)].document, longest);
  }
  windows_.clear();
}

void Evaluator::refuse(size_t document, int64_t longest) {
  const Trouble trouble =
      engine_.executor().diagnose_evaluation(ids_, targets_, {std::ssize(ids_) / longest, longest});
  fail(ErrorKind::data,
       "the loss of {} is not finite{}; the model's values are beyond what {} can hold, or its "
       "weights are damaged",
       name_ ? name_(document) : fmt::format("document {}", document),
       trouble.arose() ? ": it begins in " + to_string(trouble) : "",
       dtype_name(engine_.setup().compute));
}

const std::vector<Evaluator::Document>& Evaluator::finish() {
  compute();
  return documents_;
}

}  // namespace rankine

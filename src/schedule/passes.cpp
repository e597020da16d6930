#include "schedule/passes.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace rankine {
namespace {

// What stands in front of and behind each action of a program once a pass is done.
class Insertions {
 public:
  explicit Insertions(const Program& program)
      : program_(program), before_(program.size()), after_(program.size()) {}

  void before(size_t index, const Action& action) { before_[index].push_back(action); }
  void after(size_t index, const Action& action) { after_[index].push_back(action); }
  Program result() const {
    Program out;
    for (size_t i = 0; i < program_.size(); ++i) {
      out.insert(out.end(), before_[i].begin(), before_[i].end());
      out.push_back(program_[i]);
      out.insert(out.end(), after_[i].begin(), after_[i].end());
    }
    return out;
  }

 private:
  const Program& program_;
  std::vector<Program> before_, after_;
};

bool computes(const Action& action) {
  return action.kind == ActionKind::forward || action.kind == ActionKind::backward;
}

void expect_expanded(const Program& program, const std::vector<BlockTraits>& blocks) {
  for (const Action& action : program) {
    expect(action.stage == program.front().stage, "passes get programs of one stage");
    if (!computes(action)) continue;
    expect(action.block >= 0 && static_cast<size_t>(action.block) < blocks.size(),
           "passes get programs whose computations name their block");
  }
}

bool has_parameters(const std::vector<BlockTraits>& blocks, int block) {
  return blocks.at(static_cast<size_t>(block)).parameter_elements > 0;
}

// Indices of the B after which a gradient is complete.
std::vector<size_t> completions(const Program& program, const std::vector<BlockTraits>& blocks,
                                bool every_micro) {
  std::vector<size_t> out;
  std::vector<bool> complete(blocks.size());
  for (size_t i = program.size(); i-- > 0;) {
    const Action& action = program[i];
    if (action.kind != ActionKind::backward || !has_parameters(blocks, action.block)) continue;
    const auto block = static_cast<size_t>(action.block);
    if (every_micro || !complete[block]) out.push_back(i);
    complete[block] = true;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace

std::vector<int> parameters_read(const Action& action, const std::vector<BlockTraits>& blocks) {
  if (!computes(action) || action.block == Action::none) return {};
  if (blocks.empty()) return {action.block};
  const BlockTraits& traits = blocks.at(static_cast<size_t>(action.block));
  const bool forward = action.kind == ActionKind::forward;
  std::vector<int> out;
  if (traits.parameter_elements > 0 && (forward || traits.backward_reads_parameters))
    out.push_back(action.block);
  if (forward && traits.tied != Action::none && has_parameters(blocks, traits.tied))
    out.push_back(traits.tied);
  return out;
}

std::vector<int> gradients_written(const Action& action, const std::vector<BlockTraits>& blocks) {
  if (!computes(action) || action.block == Action::none) return {};
  const bool forward = action.kind == ActionKind::forward;
  if (blocks.empty()) return forward ? std::vector<int>{} : std::vector<int>{action.block};
  const BlockTraits& traits = blocks.at(static_cast<size_t>(action.block));
  std::vector<int> out;
  if (traits.parameter_elements > 0 && (!forward || traits.forward_adds_gradients))
    out.push_back(action.block);
  if (forward && traits.tied != Action::none && has_parameters(blocks, traits.tied))
    out.push_back(traits.tied);
  return out;
}

Program expand_blocks(const Program& program, int blocks) {
  Program out;
  for (const Action& action : program) {
    if (!computes(action)) {
      out.push_back(action);
      continue;
    }
    expect(action.block == Action::none, "only computations of whole stages are expanded");
    for (int i = 0; i < blocks; ++i) {
      out.push_back(action);
      out.back().block = action.kind == ActionKind::forward ? i : blocks - 1 - i;
    }
  }
  return out;
}

Program add_reduces(const Program& expanded, const std::vector<BlockTraits>& blocks,
                    const ReducePlan& plan) {
  expect_expanded(expanded, blocks);
  const std::vector<size_t> complete = completions(expanded, blocks, plan.every_micro);
  const auto bucket_of = [&](size_t index) { return plan.every_micro ? expanded[index].micro : 0; };
  std::map<int, size_t> left;  // completions a bucket can still hope for
  for (const size_t index : complete) ++left[bucket_of(index)];

  struct Bucket {
    int64_t elements = 0;
    Program reduces = {};
  };
  std::map<int, Bucket> buckets;
  Insertions insertions(expanded);
  for (const size_t index : complete) {
    const Action& action = expanded[index];
    Bucket& bucket = buckets[bucket_of(index)];
    bucket.elements += blocks[static_cast<size_t>(action.block)].parameter_elements;
    bucket.reduces.push_back({action.stage, ActionKind::reduce, action.micro, action.block});
    if (--left[bucket_of(index)] > 0 && bucket.elements < plan.bucket_elements) continue;
    for (const Action& reduce : bucket.reduces) insertions.after(index, reduce);
    bucket = {};
  }
  return insertions.result();
}

Program add_gathers(const Program& program, const std::vector<BlockTraits>& blocks) {
  expect_expanded(program, blocks);
  std::vector<size_t> computations;
  for (size_t i = 0; i < program.size(); ++i)
    if (computes(program[i])) computations.push_back(i);
  std::vector<std::vector<int>> reads;
  for (const size_t index : computations) reads.push_back(parameters_read(program[index], blocks));
  const auto reads_block = [&](size_t at, int block) {
    return at < reads.size() &&
           std::find(reads[at].begin(), reads[at].end(), block) != reads[at].end();
  };

  Insertions insertions(program);
  std::vector<bool> gathered(blocks.size());
  for (size_t at = 0; at < computations.size(); ++at) {
    for (const int block : reads[at]) {
      const auto b = static_cast<size_t>(block);
      const Action gather{program[computations[at]].stage, ActionKind::gather, Action::none, block};
      if (!gathered[b]) insertions.before(computations[at == 0 ? 0 : at - 1], gather);
      gathered[b] = reads_block(at + 1, block) || reads_block(at + 2, block);
      if (gathered[b]) continue;
      Action release = gather;
      release.kind = ActionKind::release;
      insertions.after(computations[at], release);
    }
  }
  return insertions.result();
}

Program add_refreshes(const Program& program, const std::vector<BlockTraits>& blocks) {
  Insertions insertions(program);
  for (size_t i = 0; i < program.size(); ++i) {
    if (program[i].kind != ActionKind::update) continue;
    for (int block = 0; block < static_cast<int>(blocks.size()); ++block)
      if (has_parameters(blocks, block))
        insertions.after(i, {program[i].stage, ActionKind::refresh, Action::none, block});
  }
  return insertions.result();
}

}  // namespace rankine

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

struct Bucket {
  int64_t elements = 0;
  size_t latest = 0;  // completion, behind which its REDUCEs stand
  Program reduces = {};

  bool holds(int block) const {
    return std::any_of(reduces.begin(), reduces.end(),
                       [&](const Action& reduce) { return reduce.block == block; });
  }
  void close(Insertions& insertions) {
    for (const Action& reduce : reduces) insertions.after(latest, reduce);
    *this = {};
  }
};

bool writes_gradients(ActionKind kind) {
  return kind == ActionKind::backward || kind == ActionKind::backward_weight;
}

// The stage of each block; that of U where no computation names the block.
std::vector<int> stages_of(const Program& program, const std::vector<BlockTraits>& blocks) {
  std::vector<int> out(blocks.size(), Action::none);
  int other = 0;
  for (const Action& action : program) {
    if (action.kind == ActionKind::update) other = action.stage;
    if (!computes(action.kind)) continue;
    expect(action.block >= 0 && static_cast<size_t>(action.block) < blocks.size(),
           "passes get programs whose computations name their block");
    out[static_cast<size_t>(action.block)] = action.stage;
  }
  std::replace(out.begin(), out.end(), Action::none, other);
  return out;
}

std::vector<size_t> computations_of(const Program& program) {
  std::vector<size_t> out;
  for (size_t i = 0; i < program.size(); ++i)
    if (computes(program[i].kind)) out.push_back(i);
  return out;
}

bool has_parameters(const std::vector<BlockTraits>& blocks, int block) {
  return blocks.at(static_cast<size_t>(block)).parameter_elements > 0;
}

// Indices of the B or W after which a gradient is complete.
std::vector<size_t> completions(const Program& program, const std::vector<BlockTraits>& blocks,
                                bool every_micro) {
  std::vector<size_t> out;
  std::vector<bool> complete(blocks.size());
  for (size_t i = program.size(); i-- > 0;) {
    const Action& action = program[i];
    if (!writes_gradients(action.kind) || !has_parameters(blocks, action.block)) continue;
    const auto block = static_cast<size_t>(action.block);
    if (every_micro || !complete[block]) out.push_back(i);
    complete[block] = true;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace

std::vector<int> parameters_read(const Action& action, const std::vector<BlockTraits>& blocks) {
  if (!computes(action.kind) || action.block == Action::none) return {};
  if (blocks.empty()) return {action.block};
  const BlockTraits& traits = blocks.at(static_cast<size_t>(action.block));
  const bool forward = action.kind == ActionKind::forward;
  if (forward && !traits.forward_reads_parameters) return {};
  std::vector<int> out;
  if (traits.parameter_elements > 0 && (forward || traits.backward_reads_parameters))
    out.push_back(action.block);
  if (traits.tied != Action::none && has_parameters(blocks, traits.tied))
    out.push_back(traits.tied);
  return out;
}

std::vector<int> gradients_written(const Action& action, const std::vector<BlockTraits>& blocks) {
  if (!writes_gradients(action.kind) || action.block == Action::none) return {};
  if (blocks.empty()) return {action.block};
  const BlockTraits& traits = blocks.at(static_cast<size_t>(action.block));
  std::vector<int> out;
  if (traits.parameter_elements > 0) out.push_back(action.block);
  if (traits.tied != Action::none && has_parameters(blocks, traits.tied))
    out.push_back(traits.tied);
  return out;
}

std::vector<StageBlocks> stage_blocks(const Program& expanded) {
  std::map<int, StageBlocks> stages;
  for (const Action& action : expanded) {
    if (!computes(action.kind) || action.block == Action::none) continue;
    StageBlocks& stage =
        stages.try_emplace(action.stage, StageBlocks{action.stage, action.block, 1}).first->second;
    const int end = std::max(stage.first + stage.count, action.block + 1);
    stage.first = std::min(stage.first, action.block);
    stage.count = end - stage.first;
  }
  std::vector<StageBlocks> out;
  for (const auto& [number, stage] : stages) out.push_back(stage);
  return out;
}

Program expand_blocks(const Program& program, const std::vector<StageBlocks>& stages,
                      const std::vector<BlockTraits>& blocks) {
  Program out;
  for (const Action& action : program) {
    if (!computes(action.kind)) {
      out.push_back(action);
      continue;
    }
    expect(action.block == Action::none, "only computations of whole stages are expanded");
    const auto stage = std::find_if(stages.begin(), stages.end(),
                                    [&](const StageBlocks& s) { return s.stage == action.stage; });
    expect(stage != stages.end(), "each stage of a program has its blocks");
    for (int i = 0; i < stage->count; ++i) {
      Action part = action;
      const bool forward = action.kind == ActionKind::forward;
      part.block = stage->first + (forward ? i : stage->count - 1 - i);
      const bool splits = blocks.at(static_cast<size_t>(part.block)).splits_backward;
      if (!splits && part.kind == ActionKind::backward_weight) continue;
      if (!splits && part.kind == ActionKind::backward_input) part.kind = ActionKind::backward;
      out.push_back(part);
    }
  }
  return out;
}

Program add_recomputes(const Program& expanded, const std::vector<BlockTraits>& blocks) {
  Program out;
  for (const Action& action : expanded) {
    const bool backward =
        action.kind == ActionKind::backward || action.kind == ActionKind::backward_input;
    if (backward && blocks.at(static_cast<size_t>(action.block)).recomputes) {
      out.push_back(action);
      out.back().kind = ActionKind::recompute;
    }
    out.push_back(action);
  }
  return out;
}

Program add_reduces(const Program& expanded, const std::vector<BlockTraits>& blocks,
                    const ReducePlan& plan) {
  stages_of(expanded, blocks);
  const std::vector<size_t> complete = completions(expanded, blocks, plan.every_micro);
  const auto bucket_of = [&](const Action& action) { return plan.every_micro ? action.micro : 0; };
  std::map<int, size_t> left;  // completions a bucket can still hope for
  for (const size_t index : complete) ++left[bucket_of(expanded[index])];

  Insertions insertions(expanded);
  std::map<int, Bucket> buckets;
  auto next = complete.begin();
  for (size_t i = 0; i < expanded.size(); ++i) {
    for (const int block : gradients_written(expanded[i], blocks))
      for (auto& [number, bucket] : buckets)
        if (bucket.holds(block)) bucket.close(insertions);
    if (next == complete.end() || *next != i) continue;
    ++next;
    const Action& action = expanded[i];
    Bucket& bucket = buckets[bucket_of(action)];
    bucket.elements += blocks[static_cast<size_t>(action.block)].parameter_elements;
    bucket.reduces.push_back({action.stage, ActionKind::reduce, action.micro, action.block});
    bucket.latest = i;
    if (--left[bucket_of(action)] == 0 || bucket.elements >= plan.bucket_elements)
      bucket.close(insertions);
  }
  return insertions.result();
}

Program add_gathers(const Program& program, const std::vector<BlockTraits>& blocks,
                    const GatherPlan& plan) {
  expect(plan.keep >= 1, "what the next computation reads stays gathered");
  const std::vector<int> stages = stages_of(program, blocks);
  const std::vector<size_t> computations = computations_of(program);
  const auto ahead = static_cast<size_t>(plan.load_ahead);
  std::vector<std::vector<size_t>> readers(blocks.size());  // of each block, in order
  for (size_t at = 0; at < computations.size(); ++at)
    for (const int block : parameters_read(program[computations[at]], blocks))
      readers[static_cast<size_t>(block)].push_back(at);

  Insertions insertions(program);
  std::vector<bool> gathered(blocks.size());
  std::vector<size_t> used(blocks.size());  // readers that are done
  std::vector<size_t> free(blocks.size());  // the computation behind the last reader
  for (size_t at = 0; at < computations.size(); ++at) {
    for (const int block : parameters_read(program[computations[at]], blocks)) {
      const auto b = static_cast<size_t>(block);
      const auto add_before = [&](size_t computation, ActionKind kind) {
        insertions.before(computations[computation], {stages[b], kind, Action::none, block});
      };
      const size_t gather = plan.gathers && at > 0 ? at - 1 : at;
      const size_t load =
          std::min(gather, std::max(free[b], gather - std::min<size_t>(gather, ahead)));
      if (!gathered[b] && ahead > 0) add_before(load, ActionKind::load);
      if (!gathered[b] && plan.gathers) add_before(gather, ActionKind::gather);
      const size_t next = ++used[b];
      gathered[b] =
          next < readers[b].size() && readers[b][next] <= at + static_cast<size_t>(plan.keep);
      if (gathered[b]) continue;
      free[b] = at + 1;
      insertions.after(computations[at], {stages[b], ActionKind::release, Action::none, block});
    }
  }
  return insertions.result();
}

Program add_stores(const Program& expanded, const std::vector<BlockTraits>& blocks, int ahead) {
  expect(ahead >= 1, "what is fetched is fetched ahead");
  const std::vector<size_t> computations = computations_of(expanded);
  std::map<std::pair<int, int>, size_t> forwards, readers;  // (block, micro-batch)
  for (size_t at = 0; at < computations.size(); ++at) {
    const Action& action = expanded[computations[at]];
    auto& first = action.kind == ActionKind::forward ? forwards : readers;
    first.emplace(std::pair(action.block, action.micro), at);
  }
  Insertions insertions(expanded);
  for (const auto& [key, forward] : forwards) {
    const auto reader = readers.find(key);
    const auto needed = static_cast<size_t>(ahead) + 3;
    if (reader == readers.end() || reader->second < forward + needed ||
        !blocks.at(static_cast<size_t>(key.first)).keeps)
      continue;
    Action copy = expanded[computations[forward]];
    copy.kind = ActionKind::store;
    insertions.after(computations[forward], copy);
    copy.kind = ActionKind::fetch;
    insertions.before(computations[reader->second - static_cast<size_t>(ahead)], copy);
  }
  return insertions.result();
}

Program add_refreshes(const Program& program, const std::vector<BlockTraits>& blocks) {
  const std::vector<int> stages = stages_of(program, blocks);
  Insertions insertions(program);
  for (size_t i = 0; i < program.size(); ++i) {
    if (program[i].kind != ActionKind::update) continue;
    for (size_t block = 0; block < blocks.size(); ++block)
      if (blocks[block].parameter_elements > 0)
        insertions.after(
            i, {stages[block], ActionKind::refresh, Action::none, static_cast<int>(block)});
  }
  return insertions.result();
}

}  // namespace rankine

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "schedule/passes.h"

namespace rankine {
namespace {

bool contains(const Program& program, ActionKind kind) {
  return std::any_of(program.begin(), program.end(),
                     [&](const Action& action) { return action.kind == kind; });
}

[[noreturn]] void reject(const Program& program, size_t step, std::string_view why) {
  fail(ErrorKind::internal, "step program: action {} ({}) {}", step, to_string(program[step]), why);
}

// True when blocks are named everywhere; a program of whole stages has nothing more to check.
bool names_blocks(const Program& program, size_t blocks) {
  int named = 0;
  bool whole = false;
  for (const Action& action : program) {
    named = std::max(named, action.block + 1);
    if (action.kind == ActionKind::forward) whole = whole || action.block == Action::none;
  }
  if (whole && named > 0)
    fail(ErrorKind::internal,
         "step program: it computes whole stages but has collectives of single blocks");
  if (named > 0 && static_cast<size_t>(named) != blocks)
    fail(ErrorKind::internal, "step program: it names {} blocks, the rank has {}", named, blocks);
  return named > 0;
}

void check_gathers(const Program& program, const std::vector<BlockTraits>& blocks) {
  // Where shards are loaded, the GATHER behind it completes them.
  const ActionKind completes =
      contains(program, ActionKind::gather) ? ActionKind::gather : ActionKind::load;
  std::vector<bool> gathered(blocks.size());
  for (size_t i = 0; i < program.size(); ++i) {
    const Action& action = program[i];
    for (const int block : parameters_read(action, blocks))
      if (!gathered[static_cast<size_t>(block)])
        reject(program, i,
               fmt::format("reads parameters of block {} that are not gathered", block));
    if (action.kind != completes && action.kind != ActionKind::release) continue;
    const auto block = static_cast<size_t>(action.block);
    if (blocks[block].parameter_elements == 0)
      reject(program, i, "names a block without parameters");
    gathered[block] = action.kind == completes;
  }
}

void check_reduces(const Program& program, int micros, const std::vector<BlockTraits>& blocks) {
  const size_t none = program.size();
  std::vector<int> backwards(blocks.size()), reduces(blocks.size());
  std::vector<size_t> early(blocks.size(), none);  // a REDUCE with another B to come
  std::vector<int> latest_micro(blocks.size(), Action::none);
  for (size_t i = 0; i < program.size(); ++i) {
    const Action& action = program[i];
    if (action.kind == ActionKind::backward || action.kind == ActionKind::backward_weight) {
      const auto block = static_cast<size_t>(action.block);
      ++backwards[block];
      latest_micro[block] = action.micro;
    }
    if (action.kind != ActionKind::reduce) continue;
    const auto block = static_cast<size_t>(action.block);
    if (blocks[block].parameter_elements == 0)
      reject(program, i, "names a block without parameters");
    ++reduces[block];
    if (backwards[block] < micros || latest_micro[block] != action.micro) early[block] = i;
  }
  const bool every_micro =
      std::any_of(reduces.begin(), reduces.end(), [](int count) { return count > 1; });
  for (size_t block = 0; block < blocks.size(); ++block) {
    if (blocks[block].parameter_elements == 0) continue;
    const int needed = every_micro ? micros : 1;
    if (reduces[block] != needed)
      fail(ErrorKind::internal, "step program: block {} is reduced {} times where {} is needed",
           block, reduces[block], needed);
    if (!every_micro && early[block] != none)
      reject(program, early[block], "is not the reduction behind the last backward of its block");
  }
}

void check_splits(const Program& program, const std::vector<BlockTraits>& blocks) {
  for (size_t i = 0; i < program.size(); ++i) {
    const Action& action = program[i];
    if (action.kind == ActionKind::backward_input || action.kind == ActionKind::backward_weight)
      if (!blocks[static_cast<size_t>(action.block)].splits_backward)
        reject(program, i, "is of a block that does not split its backward");
  }
}

void check_recomputes(const Program& program, int micros, const std::vector<BlockTraits>& blocks) {
  std::vector<int> count(blocks.size());
  for (const Action& action : program)
    if (action.kind == ActionKind::recompute) ++count[static_cast<size_t>(action.block)];
  for (size_t block = 0; block < blocks.size(); ++block)
    if (count[block] != (blocks[block].recomputes ? micros : 0))
      fail(ErrorKind::internal, "step program: block {} is recomputed {} times where {} is needed",
           block, count[block], blocks[block].recomputes ? micros : 0);
}

void check_refreshes(const Program& program, const std::vector<BlockTraits>& blocks) {
  std::vector<bool> refreshed(blocks.size());
  for (size_t i = 0; i < program.size(); ++i) {
    if (program[i].kind != ActionKind::refresh) continue;
    const auto block = static_cast<size_t>(program[i].block);
    if (blocks[block].parameter_elements == 0)
      reject(program, i, "names a block without parameters");
    refreshed[block] = true;
  }
  for (size_t block = 0; block < blocks.size(); ++block)
    if (blocks[block].parameter_elements > 0 && !refreshed[block])
      fail(ErrorKind::internal, "step program: block {} is never refreshed", block);
}

}  // namespace

void check(const Program& program, int micros, const std::vector<BlockTraits>& blocks) {
  check(program, micros);
  if (!names_blocks(program, blocks.size())) return;
  check_splits(program, blocks);
  check_recomputes(program, micros, blocks);
  if (contains(program, ActionKind::gather) || contains(program, ActionKind::load))
    check_gathers(program, blocks);
  if (contains(program, ActionKind::reduce)) check_reduces(program, micros, blocks);
  if (contains(program, ActionKind::refresh)) check_refreshes(program, blocks);
}

}  // namespace rankine

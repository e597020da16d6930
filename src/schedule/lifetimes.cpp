#include "schedule/lifetimes.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace rankine {
namespace {

constexpr int64_t alignment = 64;

int64_t aligned(int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Index of the `linger`-th computation after `reduce`, at most that of U or the last action.
int kept_until(const Program& program, int reduce, int linger) {
  int last = reduce;
  for (size_t i = static_cast<size_t>(reduce) + 1; i < program.size() && linger > 0; ++i) {
    last = static_cast<int>(i);
    if (program[i].kind == ActionKind::update) break;
    if (computes(program[i].kind)) --linger;
  }
  return last;
}

int last_use(const Program& program) {  // of a gradient that is never reduced
  const auto update = std::find_if(program.begin(), program.end(), [](const Action& action) {
    return action.kind == ActionKind::update;
  });
  return static_cast<int>(std::min<ptrdiff_t>(update - program.begin(), std::ssize(program) - 1));
}

// Places each in turn in the lowest gap among those placed that it meets in time.
int64_t first_fit(std::vector<Stay>& stays, const std::vector<size_t>& order) {
  std::vector<const Stay*> placed;  // by offset
  int64_t pool = 0;
  for (const size_t index : order) {
    Stay& stay = stays[index];
    stay.offset = 0;
    for (const Stay* other : placed) {
      if (other->last < stay.first || stay.last < other->first) continue;
      if (stay.offset + stay.bytes <= other->offset) break;
      stay.offset = std::max(stay.offset, aligned(other->offset + other->bytes));
    }
    pool = std::max(pool, aligned(stay.offset + stay.bytes));
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), &stay,
                         [](const Stay* a, const Stay* b) { return a->offset < b->offset; }),
        &stay);
  }
  return pool;
}

}  // namespace

std::vector<Stay> gather_stays(const Program& program, const std::vector<int64_t>& block_bytes) {
  std::vector<Stay> stays;
  std::vector<int> open(block_bytes.size(), Action::none);  // index into stays
  for (size_t i = 0; i < program.size(); ++i) {
    const Action& action = program[i];
    if (action.kind != ActionKind::load && action.kind != ActionKind::gather &&
        action.kind != ActionKind::release)
      continue;
    const auto block = static_cast<size_t>(action.block);
    if (action.kind != ActionKind::release) {
      const bool loaded =
          open.at(block) != Action::none &&
          program[static_cast<size_t>(stays[static_cast<size_t>(open[block])].first)].kind ==
              ActionKind::load;
      if (action.kind == ActionKind::gather && loaded) continue;
      expect(open.at(block) == Action::none, "a block is gathered once at a time");
      open[block] = static_cast<int>(stays.size());
      stays.push_back({action.block, static_cast<int>(i), static_cast<int>(i), block_bytes[block]});
    } else {
      expect(open.at(block) != Action::none, "what is released was gathered");
      stays[static_cast<size_t>(open[block])].last = static_cast<int>(i);
      open[block] = Action::none;
    }
  }
  expect(std::all_of(open.begin(), open.end(), [](int index) { return index == Action::none; }),
         "what is gathered is released");
  return stays;
}

std::vector<Stay> gradient_stays(const Program& program, const std::vector<BlockTraits>& blocks,
                                 const std::vector<int64_t>& block_bytes, int linger) {
  expect(blocks.size() == block_bytes.size(), "each block has its bytes");
  std::vector<Stay> stays;
  std::vector<int> latest(blocks.size(), Action::none);  // index into stays
  std::vector<bool> reduced(blocks.size());              // the latest stay's REDUCE has come
  for (size_t i = 0; i < program.size(); ++i) {
    const Action& action = program[i];
    const int now = static_cast<int>(i);
    for (const int written : gradients_written(action, blocks)) {
      const auto block = static_cast<size_t>(written);
      if (latest[block] != Action::none && !reduced[block]) continue;
      if (latest[block] != Action::none) {
        Stay& before = stays[static_cast<size_t>(latest[block])];
        before.last = std::min(before.last, now - 1);
      }
      latest[block] = static_cast<int>(stays.size());
      reduced[block] = false;
      stays.push_back({.block = written,
                       .first = now,
                       .last = last_use(program),
                       .bytes = block_bytes[block],
                       .kind = StayKind::gradient});
    }
    if (action.kind != ActionKind::reduce) continue;
    const auto block = static_cast<size_t>(action.block);
    expect(latest.at(block) != Action::none && !reduced[block],
           "what is reduced was written since the last time");
    stays[static_cast<size_t>(latest[block])].last = kept_until(program, now, linger);
    reduced[block] = true;
  }
  return stays;
}

int64_t place(std::vector<Stay>& stays) {
  std::vector<size_t> by_start(stays.size());
  std::iota(by_start.begin(), by_start.end(), size_t{0});
  std::stable_sort(by_start.begin(), by_start.end(),
                   [&](size_t a, size_t b) { return stays[a].first < stays[b].first; });
  std::vector<size_t> by_size = by_start;
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return stays[a].bytes > stays[b].bytes; });
  std::vector<Stay> other = stays;
  const int64_t pool = first_fit(stays, by_start), alternative = first_fit(other, by_size);
  if (alternative >= pool) return pool;
  stays = std::move(other);
  return alternative;
}

}  // namespace rankine

#include <algorithm>
#include <string_view>

#include "bench/bench.h"

namespace rankine {
namespace {

// What is measured instead of training steps once the option of that name is given: the options
// that only it obeys, and those of training steps that it obeys too.
struct Mode {
  BenchMode mode;
  std::string_view name;
  std::vector<std::string_view> own, shared;
};

const std::vector<Mode>& modes() {
  static const std::vector<Mode> all = {
      {BenchMode::generate,
       "generate",
       {"batch-size"},
       {"model", "precision", "threads", "instruction-set", "memory-limit", "profile"}},
      {BenchMode::collectives,
       "collectives",
       {},
       {"ranks", "oversubscribe", "threads", "comm-timeout", "shared-memory"}},
      {BenchMode::disk, "disk", {"disk-size"}, {}},
      {BenchMode::text, "text", {"tokenizer"}, {}}};
  return all;
}

bool is_among(std::string_view name, const std::vector<std::string_view>& names) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

BenchMode bench_mode(const OptionTable& table) {
  const Mode* chosen = nullptr;
  for (const Mode& mode : modes())
    if (chosen == nullptr && table.given(mode.name)) chosen = &mode;
  if (chosen == nullptr) {
    for (const Mode& mode : modes())
      refuse_without_effect(table, mode.own, fmt::format("without --{}", mode.name));
    return BenchMode::training;
  }
  std::vector<std::string_view> idle;
  for (const Option& option : table.options()) {
    const std::string& name = option.names.front();
    if (name != "json" && name != chosen->name && !is_among(name, chosen->own) &&
        !is_among(name, chosen->shared))
      idle.push_back(name);
  }
  refuse_without_effect(table, idle, fmt::format("on what --{} measures", chosen->name));
  return chosen->mode;
}

}  // namespace rankine

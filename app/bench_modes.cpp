#include <algorithm>
#include <string_view>

#include "bench.h"

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
  const auto given = [&](const std::string& name) {
    return table.origin(name) != OptionOrigin::standard;
  };
  const Mode* chosen = nullptr;
  for (const Mode& mode : modes())
    if (chosen == nullptr && given(std::string(mode.name))) chosen = &mode;
  for (const Option& option : table.options()) {
    const std::string& name = option.names.front();
    if (!given(name) || name == "json") continue;
    if (chosen != nullptr)
      require(name == chosen->name || is_among(name, chosen->own) || is_among(name, chosen->shared),
              ErrorKind::usage, "--{} has no effect on what --{} measures; leave it out", name,
              chosen->name);
    else
      for (const Mode& mode : modes())
        require(!is_among(name, mode.own), ErrorKind::usage,
                "--{} has an effect only together with --{}", name, mode.name);
  }
  return chosen == nullptr ? BenchMode::training : chosen->mode;
}

}  // namespace rankine

#pragma once
#include <cstdint>
#include <string_view>

#include "base/error.h"

// ZeRO (Rajbhandari et al. 2020, arXiv 1910.02054) as data: which model states a rank of the data
// axis keeps whole and which it keeps its shard of. Stage n is made here and nowhere else.
namespace rankine {

enum class Held : uint8_t { whole, shard };

struct ZeroPlan {
  Held params = Held::whole, grads = Held::whole, optimizer = Held::whole;
};

inline ZeroPlan zero_stage(int64_t stage) {
  require(0 <= stage && stage <= 3, ErrorKind::usage, "--zero {}: the stages are 0, 1, 2 and 3",
          stage);
  const auto from = [&](int64_t first) { return stage >= first ? Held::shard : Held::whole; };
  return {.params = from(3), .grads = from(2), .optimizer = from(1)};
}

// The four questions that everything else asks.
inline bool scatters_gradients(const ZeroPlan& plan) {  // reduce_scatter, otherwise all_reduce
  return plan.optimizer == Held::shard;
}
inline bool reduces_every_micro(const ZeroPlan& plan) {
  return plan.grads == Held::shard;
}
inline bool gathers_per_use(const ZeroPlan& plan) {
  return plan.params == Held::shard;
}
inline bool gathers_after_step(const ZeroPlan& plan) {
  return plan.params == Held::whole && plan.optimizer == Held::shard;
}

}  // namespace rankine

#pragma once
#include <cstddef>
#include <cstdint>

#include "comm/communicator.h"

// Elementwise arithmetic of reductions. A dtype travels as itself and is summed in its `sum` type:
// f32 for the 16-bit ones, otherwise itself.
namespace rankine {

struct Combine {
  DType sum;                                                 // type of accumulators
  void (*widen)(const void* in, void* out, int64_t count);   // wire -> sum
  void (*narrow)(const void* in, void* out, int64_t count);  // sum -> wire, rounds once
  void (*fold_wire)(const void* a, const void* in, void* out, int64_t count);  // sum, wire -> sum
  // Two as they travel, through the sum's type, rounded once; written to two places, which may be
  // one.
  void (*fold_pair)(const void* a, const void* b, void* out, void* also, int64_t count);
  void (*fold)(const void* a, const void* b, void* out, int64_t count);  // sum, sum -> sum
};
// `out` may be `a` or `b`. Error{internal} for a dtype without arithmetic.
const Combine& combine_of(DType dtype, Reduction reduction);

// Copies through the caches, for memory that another processor reads at once.
void copy_through_caches(void* to, const void* from, size_t bytes);
// Copies around the caches, for memory that is not read soon.
void copy_past_caches(void* to, const void* from, size_t bytes);

}  // namespace rankine

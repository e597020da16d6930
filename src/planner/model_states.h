#pragma once
#include <array>
#include <cstdint>

#include "state/zero_plan.h"
#include "tensor/dtype.h"

// How many bytes of parameters, gradients and optimizer states a rank holds. Rule: these are
// counted from a number of parameters alone; what buffers and activations need is a MemoryPlan's
// matter.
namespace rankine {

// Bytes per parameter. The default is mixed-precision Adam as section 3 of the ZeRO paper (arXiv
// 1910.02054) counts it: 16 bit parameters and gradients; f32 copy, momentum and variance.
struct StateWidths {
  uint64_t parameter = 2, gradient = 2, optimizer = 12;
  uint64_t total() const { return parameter + gradient + optimizer; }
};

// What training in `compute` holds here: f32 gradients; an f32 copy of 16 bit parameters, while f32
// parameters need none.
StateWidths state_widths(DType compute);

struct ModelStates {
  uint64_t parameter_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0;
  uint64_t total() const { return parameter_bytes + gradient_bytes + optimizer_bytes; }
};

// The largest share any of `data_degree` ranks holds; a shard is a whole number of elements.
// Error{usage} unless 1 <= parameters <= 10^17 and data_degree >= 1.
ModelStates model_states(int64_t parameters, int64_t data_degree, const ZeroPlan& plan,
                         const StateWidths& widths = {});

// The same for the ZeRO stages 0, 1, 2 and 3.
std::array<ModelStates, 4> zero_table(int64_t parameters, int64_t data_degree,
                                      const StateWidths& widths = {});

// The optimizer states' part of the unsharded total, 0 to 1.
double optimizer_share(const StateWidths& widths);

}  // namespace rankine

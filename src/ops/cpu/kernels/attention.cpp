#include "ops/cpu/kernels/attention_parts.h"
#include "ops/cpu/kernels/parts.h"

namespace rankine::RANKINE_ISA {
namespace {

template <class S>
size_t workspace(const AttentionCall& call) {
  const size_t forward = forward_workspace<S>(call), backward = backward_workspace<S>(call);
  return forward > backward ? forward : backward;
}

}  // namespace

AttentionKernels attention_kernels() {
  return {
      .attention = {attention_forward<float>, attention_forward<Bf16>, attention_forward<F16>},
      .attention_grad = {attention_backward<float>, attention_backward<Bf16>,
                         attention_backward<F16>},
      .attention_cached = {attention_cached<float>, attention_cached<Bf16>, attention_cached<F16>},
      .workspace = {workspace<float>, workspace<Bf16>, workspace<F16>},
      .cached_workspace = cached_workspace};
}

}  // namespace rankine::RANKINE_ISA

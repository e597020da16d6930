#include "ops/cpu/kernels/table.h"

#include "ops/cpu/kernels/parts.h"

namespace rankine::RANKINE_ISA {

KernelTable kernels() {
  return {.casts = cast_kernels(),
          .few_rows = few_rows_kernels(),
          .attention = attention_kernels(),
          .norms = norm_kernels(),
          .head_norms = head_norm_kernels(),
          .activations = activation_kernels(),
          .elements = element_kernels(),
          .random = random_kernels(),
          .ropes = rope_kernels(),
          .embeds = embed_kernels(),
          .cross_entropies = cross_entropy_kernels(),
          .choices = choose_kernels(),
          .sums = sum_kernels(),
          .optimizers = optimizer_kernels()};
}

}  // namespace rankine::RANKINE_ISA

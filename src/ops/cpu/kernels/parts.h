#pragma once
#include "ops/cpu/kernels/table.h"

// Each kernel file fills in its part of the table; table.cpp joins them. RANKINE_ISA names the
// namespace of the instruction set being compiled.
namespace rankine::RANKINE_ISA {

CastKernels cast_kernels();
FewRowsKernels few_rows_kernels();
AttentionKernels attention_kernels();
NormKernels norm_kernels();
HeadNormKernels head_norm_kernels();
ActivationKernels activation_kernels();
ElementKernels element_kernels();
RandomKernels random_kernels();
RopeKernels rope_kernels();
EmbedKernels embed_kernels();
CrossEntropyKernels cross_entropy_kernels();
ChooseKernels choose_kernels();
SumKernels sum_kernels();
OptimizerKernels optimizer_kernels();

}  // namespace rankine::RANKINE_ISA

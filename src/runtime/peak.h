#pragma once
#include "ops/ops.h"

// What this machine can do at best, measured: the denominators of MFU and of bandwidth shares.
namespace rankine {

// Floating-point operations per second of large matrix products in `dtype`: the median of `rounds`
// over the fastest of a few shapes. A dtype that is computed by converting to f32 is held against
// the f32 rate, which bounds it.
double measure_matmul_flops(Ops& ops, DType dtype, int rounds);
// Bytes per second of the optimizer's pattern (4 f32 streams read, 3 written), multiplied and
// added without a division or root: what AdamW could reach.
double measure_stream_bytes(int threads, int rounds);

}  // namespace rankine

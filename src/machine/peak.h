#pragma once
#include "ops/ops.h"
#include "tensor/arena.h"

// What this machine can do at best, measured: the denominators of MFU and of bandwidth shares.
namespace rankine {

// A large matrix product, y[rows, outputs] = x[rows, inputs] w^T, in one dtype.
struct Product {
  int64_t rows, inputs, outputs;
  DType dtype;
};

// Floating-point operations per second of `product`: the median of `rounds`.
double measure_product_flops(Ops& ops, const Product& product, int rounds);
// The same, sustained: the mean rate over at least `seconds`.
double sustained_product_flops(Ops& ops, const Product& product, double seconds);
// The fastest of a few large products in `dtype` and its rate, what MFU is a share of. A dtype that
// is computed by converting to f32 is held against f32 products, which bound it.
struct FastestProduct {
  Product product;
  double flops;
};
FastestProduct fastest_product(Ops& ops, DType dtype, int rounds);
// Bytes per second of the optimizer's pattern (4 f32 streams read, 3 written), multiplied and
// added without a division or root: what AdamW could reach.
double measure_stream_bytes(int threads, int rounds);

// Reading memory and nothing else, what generating text could reach at best.
class MemoryReading {
 public:
  explicit MemoryReading(int threads);
  double bytes_per_second();  // of one pass

 private:
  size_t threads_;
  Arena arena_;
  const uint64_t* words_;
};

}  // namespace rankine

#pragma once
#include <cstddef>
#include <memory>

#include "ops/cpu/onednn.h"

// Matrix products by oneDNN, compiled on first use and kept. One object serves one calling thread
// at a time; executing a product that was seen before allocates nothing.
namespace rankine {

struct ProductOperands {
  const void *a, *b, *bias;  // bias may be null when the product has none
  void* c;
  void* scratch;  // scratch_bytes(product) bytes, 64-aligned
};

class Matmul {
 public:
  Matmul();
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  // Compiles the product for the calling thread's OpenMP thread count.
  size_t scratch_bytes(const Product& product);
  void run(const Product& product, const ProductOperands& operands);

 private:
  struct Compiled;
  struct Cache;
  Compiled& compiled(const Product& product);
  std::unique_ptr<Cache> cache_;
};

}  // namespace rankine

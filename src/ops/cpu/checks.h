#pragma once
#include "base/error.h"
#include "tensor/tensor.h"

// What the members of CpuOps ask of their tensors before a kernel sees bare pointers.
namespace rankine {

// The extent of the last dim, and the number of rows of that width.
inline int64_t width_of(const Tensor& x) {
  expect(x.shape.rank() >= 1, "a tensor with at least one dim");
  return x.shape[x.shape.rank() - 1];
}
inline int64_t rows_of(const Tensor& x) {
  const int64_t width = width_of(x);
  return width == 0 ? 0 : x.elements() / width;
}

// True for a tensor of `count` elements of this type.
inline bool holds(const Tensor& x, DType dtype, int64_t count) {
  return !x.empty() && x.dtype == dtype && x.elements() == count;
}
inline bool empty_or_holds(const Tensor& x, DType dtype, int64_t count) {
  return x.empty() || holds(x, dtype, count);
}

template <class T>
T* data_of(const Tensor& x) {
  expect(x.device == DeviceKind::cpu, "an operation's tensors lie in memory of the processor");
  return static_cast<T*>(x.data);
}

}  // namespace rankine

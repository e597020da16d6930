#pragma once
#include <type_traits>

#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

// A non-owning contiguous view of elements on one device. Copying copies the view.
namespace rankine {

// Whose memory a tensor lies in; `queued` is the simulated device of src/ops/queued.
enum class DeviceKind : uint8_t { cpu, queued };

struct Tensor {
  void* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;
  DeviceKind device = DeviceKind::cpu;

  bool empty() const { return data == nullptr; }
  int64_t elements() const { return shape.elements(); }
  int64_t bytes() const { return elements() * dtype_bytes(dtype); }

  // The same bytes seen as another shape with as many or fewer elements (a prefix).
  Tensor as(const Shape& other) const {
    expect(other.elements() <= elements(), "a view cannot be larger than its tensor");
    return {data, dtype, other, device};
  }
  // Rows [first, first + count) along dim 0.
  Tensor rows(int64_t first, int64_t count) const {
    expect(0 <= first && 0 <= count && first + count <= shape[0], "rows within the tensor");
    const int64_t row_bytes = shape[0] == 0 ? 0 : bytes() / shape[0];
    return {static_cast<char*>(data) + first * row_bytes, dtype, shape.with(0, count), device};
  }
  // Elements [first, first + count) as one dim.
  Tensor range(int64_t first, int64_t count) const {
    expect(0 <= first && 0 <= count && first + count <= elements(), "range within the tensor");
    return {static_cast<char*>(data) + first * dtype_bytes(dtype), dtype, Shape{count}, device};
  }
};
static_assert(std::is_trivially_copyable_v<Tensor>);

}  // namespace rankine

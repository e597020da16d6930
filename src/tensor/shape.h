#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

// The extents of a tensor, up to four dims, stored inline: no heap on the step path.
namespace rankine {

class Shape {
 public:
  static constexpr int max_rank = 4;
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);  // Error{internal} over max_rank dims

  int rank() const { return rank_; }
  int64_t operator[](int dim) const { return dims_[static_cast<size_t>(dim)]; }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  int64_t elements() const;  // 1 for a scalar
  Shape with(int dim, int64_t extent) const;
  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, max_rank> dims_{};
  int rank_ = 0;
};

std::string to_string(const Shape& shape);  // "[50257, 768]"

}  // namespace rankine

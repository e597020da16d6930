#pragma once
#include <array>
#include <cstdint>
#include <span>

// A sum of doubles without rounding: a fixed-point number of 68 digits of 32 bits that covers every
// double (Kulisch 2002). Adding is integer arithmetic, so that the result does not depend on order,
// threads or ranks; sums of parts add digit by digit.
namespace rankine {

class ExactSum {
 public:
  static constexpr int digits = 68;
  static constexpr int size = digits + 1;  // the last counts infinities and NaNs

  ExactSum() = default;
  // From parts that were added digit by digit, at most 2^30 numbers in all.
  explicit ExactSum(std::span<const int64_t, size> parts);

  void add(double x);
  void add(const ExactSum& other);
  // Rounded once to nearest even; NaN after an infinity or NaN.
  double value() const;
  std::span<int64_t, size> parts() { return parts_; }

 private:
  std::array<int64_t, size> parts_{};
};

}  // namespace rankine

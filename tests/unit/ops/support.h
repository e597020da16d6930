#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "ops/cpu/cpu_ops.h"

// Shared by the tests of operations: tensors with random contents that own their memory, backends
// of every instruction set this machine has, and comparison with f64 references.
namespace rankine::test {

// A contiguous tensor in 64-aligned memory of its own, with guard bytes behind it.
class Memory {
 public:
  Memory(DType dtype, const Shape& shape)
      : bytes_(static_cast<size_t>(shape.elements() * dtype_bytes(dtype))),
        storage_(bytes_ + 192, std::byte{guard}) {
    const size_t misaligned = reinterpret_cast<uintptr_t>(storage_.data()) % 64;
    tensor_ = {storage_.data() + (64 - misaligned) % 64, dtype, shape};
    std::memset(tensor_.data, 0, bytes_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  Memory(Memory&&) = default;
  Memory& operator=(Memory&&) = default;

  const Tensor& tensor() const { return tensor_; }
  bool guard_intact() const {
    const auto* end = static_cast<const std::byte*>(tensor_.data) + bytes_;
    for (int i = 0; i < 64; ++i)
      if (end[i] != std::byte{guard}) return false;
    return true;
  }

 private:
  static constexpr unsigned char guard = 0xa5;
  size_t bytes_;
  std::vector<std::byte> storage_;
  Tensor tensor_;
};

inline float element(const Tensor& x, int64_t i) {
  switch (x.dtype) {
    case DType::bf16:
      return to_float(static_cast<const Bf16*>(x.data)[i]);
    case DType::f16:
      return to_float(static_cast<const F16*>(x.data)[i]);
    default:
      return static_cast<const float*>(x.data)[i];
  }
}

inline void set_element(const Tensor& x, int64_t i, float value) {
  switch (x.dtype) {
    case DType::bf16:
      static_cast<Bf16*>(x.data)[i] = from_float<Bf16>(value);
      break;
    case DType::f16:
      static_cast<F16*>(x.data)[i] = from_float<F16>(value);
      break;
    default:
      static_cast<float*>(x.data)[i] = value;
  }
}

// Uniform in [-scale, scale), rounded to the element type.
inline Memory random_memory(DType dtype, const Shape& shape, uint64_t seed, float scale = 1) {
  Memory memory(dtype, shape);
  const RandomKey key = random_key(seed, "test");
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const uint32_t bits = philox(key, static_cast<uint64_t>(i))[0];
    set_element(memory.tensor(), i, scale * (2 * unit_float(bits) - 1));
  }
  return memory;
}

inline std::vector<double> values(const Tensor& x) {
  std::vector<double> out;
  for (int64_t i = 0; i < x.elements(); ++i)
    out.push_back(x.dtype == DType::f64 ? static_cast<const double*>(x.data)[i] : element(x, i));
  return out;
}

// The largest relative error of one rounding.
inline double rounding(DType dtype) {
  return dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : 0x1p-24;
}

// Every element within `tolerance` x the largest reference magnitude, or x `floor` if that is more.
inline testing::AssertionResult near(const std::vector<double>& got,
                                     const std::vector<double>& reference, double tolerance,
                                     double floor = 0) {
  if (got.size() != reference.size())
    return testing::AssertionFailure() << got.size() << " values, expected " << reference.size();
  double largest = floor;
  for (const double r : reference) largest = std::max(largest, std::abs(r));
  for (size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - reference[i]) <= tolerance * largest))
      return testing::AssertionFailure()
             << "element " << i << " is " << got[i] << ", expected " << reference[i] << " within "
             << tolerance << " x " << largest;
  return testing::AssertionSuccess();
}

inline testing::AssertionResult same_bytes(const Tensor& a, const Tensor& b) {
  if (a.bytes() == b.bytes() && std::memcmp(a.data, b.data, static_cast<size_t>(a.bytes())) == 0)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "bytes differ";
}

// d f / d x[i] of a f64 function by central differences.
inline double slope(std::vector<double>& x, size_t i,
                    const std::function<double(const std::vector<double>&)>& f,
                    double step = 1e-5) {
  const double old = x[i];
  x[i] = old + step;
  const double above = f(x);
  x[i] = old - step;
  const double below = f(x);
  x[i] = old;
  return (above - below) / (2 * step);
}

struct InstructionSet {
  std::string name;
  KernelTable kernels;
};

// Those this machine supports, and the emulation of bf16 pair products.
inline std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets{{"avx2", avx2::kernels()}};
  const auto add = [&sets](const char* name, KernelTable (*kernels)()) {
    try {
      make_cpu_ops(1, name);
      sets.push_back({name, kernels()});
    } catch (const Error&) {
      return;  // the processor lacks it
    }
  };
  add("avx512", avx512::kernels);
  add("avx512_bf16", avx512_bf16::kernels);
  InstructionSet pairs{"avx2_pairs", avx2::kernels()};
  pairs.kernels.attention = avx2_pairs::attention_kernels();
  sets.push_back(pairs);
  return sets;
}

// A backend with a workspace of exactly the bytes asked for; guards show when it is exceeded.
class Backend {
 public:
  Backend(int threads, const InstructionSet& set)
      : ops_(threads, set.name, set.kernels), workspace_(DType::u8, Shape{0}) {}
  CpuOps& ops() { return ops_; }
  void reserve(size_t bytes) {
    workspace_ = Memory(DType::u8, Shape{static_cast<int64_t>(bytes)});
    ops_.set_workspace(workspace_.tensor());
  }
  bool workspace_intact() const { return workspace_.guard_intact(); }

 private:
  CpuOps ops_;
  Memory workspace_;
};

inline constexpr DType storage_types[] = {DType::f32, DType::bf16, DType::f16};

}  // namespace rankine::test

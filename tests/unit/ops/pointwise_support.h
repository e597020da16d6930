#pragma once
#include <array>

#include "unit/ops/support.h"

// For the tests of pointwise operations: every instruction set and storage type in turn, and
// comparison element by element.
namespace rankine::test {

using Values = std::vector<double>;

// A Memory that stands for its tensor.
class Owned : public Memory {
 public:
  Owned(DType dtype, const Shape& shape, const Values& contents = {}) : Memory(dtype, shape) {
    for (size_t i = 0; i < contents.size(); ++i)
      set_element(tensor(), static_cast<int64_t>(i), static_cast<float>(contents[i]));
  }
  explicit Owned(Memory&& memory) : Memory(std::move(memory)) {}
  operator const Tensor&() const { return tensor(); }
  Values values() const { return test::values(tensor()); }
  std::string bits() const {
    return {static_cast<const char*>(tensor().data), static_cast<size_t>(tensor().bytes())};
  }
};

inline Owned random_tensor(DType dtype, const Shape& shape, uint64_t seed, float scale = 1) {
  return Owned(random_memory(dtype, shape, seed, scale));
}

inline Owned indices(const std::vector<int32_t>& contents) {
  Owned memory(DType::i32, {static_cast<int64_t>(contents.size())});
  std::memcpy(memory.tensor().data, contents.data(), contents.size() * sizeof(int32_t));
  return memory;
}

// Exactly as many bytes as reported, set as the workspace of `ops`; complains when exceeded.
class Workspace {
 public:
  Workspace(Ops& ops, size_t bytes) : memory_(DType::u8, {static_cast<int64_t>(bytes)}) {
    ops.set_workspace(memory_.tensor());
  }
  ~Workspace() { EXPECT_TRUE(memory_.guard_intact()) << "workspace exceeded"; }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

 private:
  Memory memory_;
};

// One rounding to the storage type plus `steps` f32 roundings of numbers up to `magnitude`.
struct Tolerance {
  DType dtype = DType::f32;
  double steps = 8;
  double magnitude = 1;
  double allowed(double expected) const {
    const double smallest_half = dtype == DType::f16 ? 0x1p-25 : 0;
    return rounding(dtype) * 1.01 * std::abs(expected) + steps * 0x1p-24 * magnitude +
           smallest_half;
  }
};

inline void expect_near(const Values& got, const Values& expected, const Tolerance& tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_LE(std::abs(got[i] - expected[i]), tolerance.allowed(expected[i]))
        << "element " << i << ": " << got[i] << " instead of " << expected[i];
}

// Compares up to 150 evenly spread elements of a gradient with central differences of `loss`.
inline void expect_gradient(const Values& gradient, Values x,
                            const std::function<double(const Values&)>& loss,
                            const Tolerance& tolerance) {
  ASSERT_EQ(gradient.size(), x.size());
  for (size_t i = 0; i < x.size(); i += 1 + x.size() / 150) {
    const double expected = slope(x, i, loss);
    ASSERT_LE(std::abs(gradient[i] - expected), tolerance.allowed(expected) + 1e-8)
        << "element " << i << ": " << gradient[i] << " instead of " << expected;
  }
}

inline double dot(const Values& a, const Values& b) {
  double total = 0;
  for (size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
  return total;
}

inline Values plus(const Values& a, const Values& b) {
  Values sum = a;
  for (size_t i = 0; i < b.size(); ++i) sum[i] += b[i];
  return sum;
}

// The instruction sets whose pointwise operations this machine can run.
inline std::vector<std::string> pointwise_sets() {
  std::vector<std::string> names;
  for (const InstructionSet& set : instruction_sets())
    if (set.name != "avx2_pairs") names.push_back(set.name);
  return names;
}

// body(set, dtype) for each instruction set and storage type, named in failures.
template <class Body>
void for_each_kind(const Body& body) {
  for (const std::string& set : pointwise_sets())
    for (const DType dtype : storage_types) {
      SCOPED_TRACE(set + " " + std::string(dtype_name(dtype)));
      body(set, dtype);
      if (testing::Test::HasFatalFailure()) return;
    }
}

// body(ops, dtype), on two threads.
template <class Body>
void on_all(const Body& body) {
  for_each_kind([&](const std::string& set, DType dtype) { body(*make_cpu_ops(2, set), dtype); });
}

// body(ops, dtype) returns the bits of its results, which must not depend on the thread count.
template <class Body>
void same_for_any_threads(const Body& body) {
  for_each_kind([&](const std::string& set, DType dtype) {
    const std::string one = body(*make_cpu_ops(1, set), dtype);
    for (const int threads : {2, 3})
      ASSERT_TRUE(one == body(*make_cpu_ops(threads, set), dtype)) << threads << " threads";
  });
}

}  // namespace rankine::test

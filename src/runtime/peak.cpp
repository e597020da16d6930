#include "runtime/peak.h"

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/process.h"
#include "tensor/arena.h"

namespace rankine {
namespace {

struct Product {
  int64_t rows, inputs, outputs;
};
constexpr std::array products{Product{2048, 2048, 2048}, Product{4096, 768, 3072}};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

template <class Work>
double seconds_of(Ops& ops, Work&& work) {
  const double start = monotonic_seconds();
  work();
  ops.synchronize();
  return monotonic_seconds() - start;
}

double product_flops(Ops& ops, DType dtype, const Product& p, int rounds) {
  MemoryPlan plan;
  const auto bytes = [&](int64_t elements) {
    return static_cast<uint64_t>(elements * dtype_bytes(dtype));
  };
  const size_t workspace = ops.linear_workspace(p.rows, p.inputs, p.outputs, dtype);
  plan.add({"x", "measurement", bytes(p.rows * p.inputs)});
  plan.add({"w", "measurement", bytes(p.outputs * p.inputs)});
  plan.add({"y", "measurement", bytes(p.rows * p.outputs)});
  plan.add({"workspace", "measurement", workspace});
  Arena arena(plan, Tier::device);
  const Tensor x = arena.take("x", dtype, Shape{p.rows, p.inputs});
  const Tensor w = arena.take("w", dtype, Shape{p.outputs, p.inputs});
  const Tensor y = arena.take("y", dtype, Shape{p.rows, p.outputs});
  ops.set_workspace(arena.take("workspace", DType::u8, Shape{static_cast<int64_t>(workspace)}));
  ops.fill(x, 0.5f);
  ops.fill(w, 0.25f);
  ops.linear(x, w, {}, y);
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round)
    seconds.push_back(seconds_of(ops, [&] { ops.linear(x, w, {}, y); }));
  ops.set_workspace({});
  return 2.0 * static_cast<double>(p.rows) * static_cast<double>(p.inputs) *
         static_cast<double>(p.outputs) / median(seconds);
}

}  // namespace

double measure_matmul_flops(Ops& ops, DType dtype, int rounds) {
  double best = 0;
  for (const Product& product : products) {
    best = std::max(best, product_flops(ops, dtype, product, rounds));
    if (!ops.native(dtype)) best = std::max(best, product_flops(ops, DType::f32, product, rounds));
  }
  return best;
}

}  // namespace rankine

#include "machine/peak.h"

#include <algorithm>
#include <vector>

#include "machine/process.h"
#include "tensor/arena.h"

namespace rankine {
namespace {

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

// Calls `measure` with one product's work, its operands in place.
template <class Measure>
void with_product(Ops& ops, const Product& p, Measure&& measure) {
  MemoryPlan plan;
  const auto bytes = [&](int64_t elements) {
    return static_cast<uint64_t>(elements * dtype_bytes(p.dtype));
  };
  const size_t workspace = ops.linear_workspace(p.rows, p.inputs, p.outputs, p.dtype);
  plan.add({"x", "measurement", bytes(p.rows * p.inputs)});
  plan.add({"w", "measurement", bytes(p.outputs * p.inputs)});
  plan.add({"y", "measurement", bytes(p.rows * p.outputs)});
  plan.add({"workspace", "measurement", workspace});
  Arena arena(plan, Tier::device, ops.device());
  const Tensor x = arena.take("x", p.dtype, Shape{p.rows, p.inputs});
  const Tensor w = arena.take("w", p.dtype, Shape{p.outputs, p.inputs});
  const Tensor y = arena.take("y", p.dtype, Shape{p.rows, p.outputs});
  ops.set_workspace(arena.take("workspace", DType::u8, Shape{static_cast<int64_t>(workspace)}));
  ops.fill(x, 0.5f);
  ops.fill(w, 0.25f);
  ops.linear(x, w, {}, y);
  measure([&] { ops.linear(x, w, {}, y); });
  ops.set_workspace({});
}

double flops_of(const Product& p) {
  return 2.0 * static_cast<double>(p.rows) * static_cast<double>(p.inputs) *
         static_cast<double>(p.outputs);
}

}  // namespace

double measure_product_flops(Ops& ops, const Product& product, int rounds) {
  std::vector<double> seconds;
  with_product(ops, product, [&](auto&& work) {
    for (int round = 0; round < rounds; ++round) seconds.push_back(seconds_of(ops, work));
  });
  return flops_of(product) / median(seconds);
}

double sustained_product_flops(Ops& ops, const Product& product, double seconds) {
  double taken = 0;
  int rounds = 0;
  with_product(ops, product, [&](auto&& work) {
    for (; taken < seconds; ++rounds) taken += seconds_of(ops, work);
  });
  return rounds * flops_of(product) / taken;
}

FastestProduct fastest_product(Ops& ops, DType dtype, int rounds) {
  std::vector<Product> products{{2048, 2048, 2048, dtype}, {4096, 768, 3072, dtype}};
  if (!ops.native(dtype)) {
    products.push_back({2048, 2048, 2048, DType::f32});
    products.push_back({4096, 768, 3072, DType::f32});
  }
  FastestProduct best{products[0], 0};
  for (const Product& product : products)
    if (const double flops = measure_product_flops(ops, product, rounds); flops > best.flops)
      best = {product, flops};
  return best;
}

}  // namespace rankine

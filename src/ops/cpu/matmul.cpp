#include "ops/cpu/matmul.h"

#include <sys/mman.h>

#include <dnnl.hpp>
#include <unordered_map>

#include "base/error.h"
#include "base/random.h"

namespace rankine {
namespace {

struct HashProduct {
  size_t operator()(const Product& p) const {
    const uint64_t flags = static_cast<uint64_t>(p.transpose_a) | p.transpose_b << 1 | p.bias << 2 |
                           p.accumulate << 3 | static_cast<uint64_t>(p.input) << 4 |
                           static_cast<uint64_t>(p.output) << 8;
    uint64_t hash = flags;
    for (const int64_t extent : {p.m, p.n, p.k})
      hash = mix_bits(hash ^ static_cast<uint64_t>(extent));
    return hash;
  }
};

// By measurement with oneDNN 2.6 and 3.7: weight gradients run faster as plain gemm, input
// gradients (nothing transposed) do so in f32 or when the sum is long, forward products as brgemm.
bool gemm_is_faster(const Product& p) {
  if (p.transpose_a) return true;
  return !p.transpose_b && (p.input == DType::f32 || p.k > 8192);
}

// onednn writes the code of a product into memory that it does not ask whether it got.
void require_room_for_code() {
  constexpr size_t enough = size_t{16} << 20;
  void* const memory = ::mmap(nullptr, enough, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(memory != MAP_FAILED, ErrorKind::resource,
          "out of memory: no addresses are left for the code of matrix products (ulimit -v)");
  ::munmap(memory, enough);
}

}  // namespace

struct Matmul::Compiled {
  dnnl::matmul primitive;
  dnnl::memory a, b, bias, c, scratch;
  size_t scratch_bytes = 0;
};

struct Matmul::Cache {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::unordered_map<Product, Compiled, HashProduct> products;
};

Matmul::Matmul() : cache_(std::make_unique<Cache>()) {}
Matmul::~Matmul() = default;

Matmul::Compiled& Matmul::compiled(const Product& product) {
  const auto found = cache_->products.find(product);
  if (found != cache_->products.end()) return found->second;
  expect(product.m > 0 && product.n > 0 && product.k > 0, "a matrix product of positive extents");
  require_room_for_code();
  const std::unique_ptr<dnnl_primitive_desc, decltype(&dnnl_primitive_desc_destroy)> described(
      describe_product(product, cache_->engine.get(), gemm_is_faster(product)),
      dnnl_primitive_desc_destroy);
  const dnnl::matmul::primitive_desc description(described.get());  // a copy
  Compiled made;
  made.primitive = dnnl::matmul(description);
  const auto unbound = [&](const dnnl::memory::desc& layout) {
    return dnnl::memory(layout, cache_->engine, nullptr);
  };
  made.a = unbound(description.src_desc());
  made.b = unbound(description.weights_desc());
  made.c = unbound(description.dst_desc());
  made.scratch = unbound(description.scratchpad_desc());
  if (product.bias) made.bias = unbound(description.bias_desc());
  made.scratch_bytes = description.scratchpad_desc().get_size();
  return cache_->products.emplace(product, std::move(made)).first->second;
}

size_t Matmul::scratch_bytes(const Product& product) {
  return compiled(product).scratch_bytes;
}

// The C interface, because dnnl::primitive::execute() builds a map and a vector on every call.
void Matmul::run(const Product& product, const ProductOperands& operands) {
  Compiled& it = compiled(product);
  const auto bind = [](const dnnl::memory& memory, const void* data) {
    return dnnl_memory_set_data_handle(memory.get(), const_cast<void*>(data)) == dnnl_success;
  };
  bool bound = bind(it.a, operands.a) && bind(it.b, operands.b) && bind(it.c, operands.c) &&
               bind(it.scratch, operands.scratch);
  dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, it.a.get()},
                                 {DNNL_ARG_WEIGHTS, it.b.get()},
                                 {DNNL_ARG_DST, it.c.get()},
                                 {DNNL_ARG_SCRATCHPAD, it.scratch.get()},
                                 {DNNL_ARG_BIAS, nullptr}};
  if (product.bias) {
    bound = bound && bind(it.bias, operands.bias);
    arguments[4].memory = it.bias.get();
  }
  expect(bound, "operands of a matrix product");
  const dnnl_status_t status = dnnl_primitive_execute(it.primitive.get(), cache_->stream.get(),
                                                      product.bias ? 5 : 4, arguments);
  require(status == dnnl_success, ErrorKind::environment,
          "onednn failed with status {} in a product [{}, {}] by [{}, {}]",
          static_cast<int>(status), product.m, product.k, product.k, product.n);
}

}  // namespace rankine

#include <dnnl.hpp>
#include <string_view>

#include "base/error.h"
#include "ops/cpu/onednn.h"

namespace rankine {
namespace {

dnnl::memory::desc matrix(int64_t rows, int64_t columns, DType dtype, bool transposed) {
  const auto type =
      dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
  const dnnl::memory::dims strides =
      transposed ? dnnl::memory::dims{1, rows} : dnnl::memory::dims{columns, 1};
  return {{rows, columns}, type, strides};
}

bool is_gemm(const dnnl::matmul::primitive_desc& description) {
  return std::string_view(description.impl_info_str()).starts_with("gemm:jit");
}

}  // namespace

dnnl_primitive_desc* describe_product(const Product& p, dnnl_engine* engine, bool prefer_gemm) {
  try {
    const dnnl::engine borrowed(engine, true);
    const auto a = matrix(p.m, p.k, p.input, p.transpose_a);
    const auto b = matrix(p.k, p.n, p.input, p.transpose_b);
    const auto c = matrix(p.m, p.n, p.output, false);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (p.accumulate) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attributes.set_post_ops(sum);
    }
    const auto describe = [&] {
      return p.bias ? dnnl::matmul::primitive_desc(borrowed, a, b, matrix(1, p.n, p.input, false),
                                                   c, attributes)
                    : dnnl::matmul::primitive_desc(borrowed, a, b, c, attributes);
    };
    dnnl::matmul::primitive_desc best = describe();
    if (prefer_gemm && !is_gemm(best)) {
      dnnl::matmul::primitive_desc other = describe();
      while (!is_gemm(other) && other.next_impl()) continue;
      if (is_gemm(other)) best = other;
    }
    dnnl_primitive_desc* result = nullptr;
    dnnl::error::wrap_c_api(dnnl_primitive_desc_clone(&result, best.get()), "clone");
    return result;
  } catch (const dnnl::error& error) {
    fail(ErrorKind::environment, "onednn cannot multiply [{}, {}] by [{}, {}] in {}: {}", p.m, p.k,
         p.k, p.n, dtype_name(p.input), error.what());
  }
}

}  // namespace rankine

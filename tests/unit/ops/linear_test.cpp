#include "unit/ops/support.h"

namespace rankine::test {
namespace {

using Values = std::vector<double>;

struct Sizes {
  int64_t rows, inputs, outputs;
};
constexpr Sizes all_sizes[] = {{1, 1, 1},    {3, 5, 7},    {33, 20, 129},
                               {64, 96, 48}, {1, 257, 31}, {600, 40, 72}};

Values product(const Values& a, const Values& b, const Sizes& s) {  // [rows,I] by [O,I]
  Values y(static_cast<size_t>(s.rows * s.outputs));
  for (int64_t r = 0; r < s.rows; ++r)
    for (int64_t o = 0; o < s.outputs; ++o)
      for (int64_t i = 0; i < s.inputs; ++i)
        y[static_cast<size_t>(r * s.outputs + o)] +=
            a[static_cast<size_t>(r * s.inputs + i)] * b[static_cast<size_t>(o * s.inputs + i)];
  return y;
}

Values transposed(const Values& x, int64_t rows, int64_t columns) {
  Values y(x.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      y[static_cast<size_t>(c * rows + r)] = x[static_cast<size_t>(r * columns + c)];
  return y;
}

class LinearTest : public testing::TestWithParam<DType> {
 protected:
  // Calls check(backend, sizes, label) for every instruction set and size, workspace reserved.
  template <class Check>
  void for_each(Check&& check) {
    for (const InstructionSet& set : instruction_sets())
      for (const Sizes& s : all_sizes) {
        Backend backend(2, set);
        backend.reserve(backend.ops().linear_workspace(s.rows, s.inputs, s.outputs, GetParam()));
        SCOPED_TRACE(fmt::format("{} {} rows {} inputs {} outputs {}", set.name,
                                 dtype_name(GetParam()), s.rows, s.inputs, s.outputs));
        check(backend.ops(), s);
        EXPECT_TRUE(backend.workspace_intact());
      }
  }
};

TEST_P(LinearTest, forward) {
  const DType dtype = GetParam();
  for_each([dtype](CpuOps& ops, const Sizes& s) {
    const Memory x = random_memory(dtype, {s.rows, s.inputs}, 1);
    const Memory w = random_memory(dtype, {s.outputs, s.inputs}, 2);
    const Memory bias = random_memory(dtype, {s.outputs}, 3);
    const Memory y(dtype, {s.rows, s.outputs});
    Values expected = product(values(x.tensor()), values(w.tensor()), s);
    ops.linear(x.tensor(), w.tensor(), {}, y.tensor());
    EXPECT_TRUE(near(values(y.tensor()), expected, rounding(dtype) + 2e-6));
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] += element(bias.tensor(), static_cast<int64_t>(i) % s.outputs);
    ops.linear(x.tensor(), w.tensor(), bias.tensor(), y.tensor());
    EXPECT_TRUE(near(values(y.tensor()), expected, rounding(dtype) + 2e-6));
    EXPECT_TRUE(y.guard_intact());
  });
}

TEST_P(LinearTest, input_gradient) {
  const DType dtype = GetParam();
  for_each([dtype](CpuOps& ops, const Sizes& s) {
    const Memory dy = random_memory(dtype, {s.rows, s.outputs}, 4);
    const Memory w = random_memory(dtype, {s.outputs, s.inputs}, 5);
    const Memory dx(dtype, {s.rows, s.inputs});
    ops.linear_input_grad(dy.tensor(), w.tensor(), dx.tensor());
    const Values expected =
        product(values(dy.tensor()), transposed(values(w.tensor()), s.outputs, s.inputs),
                {s.rows, s.outputs, s.inputs});
    EXPECT_TRUE(near(values(dx.tensor()), expected, rounding(dtype) + 2e-6));
    EXPECT_TRUE(dx.guard_intact());
  });
}

TEST_P(LinearTest, weight_gradient_overwrites_or_accumulates) {
  const DType dtype = GetParam();
  for_each([dtype](CpuOps& ops, const Sizes& s) {
    const Memory dy = random_memory(dtype, {s.rows, s.outputs}, 6);
    const Memory x = random_memory(dtype, {s.rows, s.inputs}, 7);
    const Memory dw = random_memory(DType::f32, {s.outputs, s.inputs}, 8);
    const Values once =
        product(transposed(values(dy.tensor()), s.rows, s.outputs),
                transposed(values(x.tensor()), s.rows, s.inputs), {s.outputs, s.rows, s.inputs});
    ops.linear_weight_grad(dy.tensor(), x.tensor(), dw.tensor(), false);
    EXPECT_TRUE(near(values(dw.tensor()), once, 2e-6));
    ops.linear_weight_grad(dy.tensor(), x.tensor(), dw.tensor(), true);
    Values twice = once;
    for (double& v : twice) v *= 2;
    EXPECT_TRUE(near(values(dw.tensor()), twice, 2e-6));
    EXPECT_TRUE(dw.guard_intact());
  });
}

// Large enough that weights and outputs are converted in several chunks.
TEST_P(LinearTest, many_chunks) {
  const DType dtype = GetParam();
  const Sizes s{3, 700, 24001};
  Backend backend(2, instruction_sets().front());
  backend.reserve(backend.ops().linear_workspace(s.rows, s.inputs, s.outputs, dtype));
  const Memory w = random_memory(dtype, {s.outputs, s.inputs}, 9);
  const Memory x = random_memory(dtype, {s.rows, s.inputs}, 10);
  const Memory y(dtype, {s.rows, s.outputs});
  backend.ops().linear(x.tensor(), w.tensor(), {}, y.tensor());
  const Values x_values = values(x.tensor()), w_values = values(w.tensor());
  EXPECT_TRUE(near(values(y.tensor()), product(x_values, w_values, s), rounding(dtype) + 2e-6));

  const Memory dx(dtype, {s.rows, s.inputs});
  backend.ops().linear_input_grad(y.tensor(), w.tensor(), dx.tensor());
  Values expected(static_cast<size_t>(s.rows * s.inputs));
  for (int64_t r = 0; r < s.rows; ++r)
    for (int64_t o = 0; o < s.outputs; ++o)
      for (int64_t i = 0; i < s.inputs; ++i)
        expected[static_cast<size_t>(r * s.inputs + i)] +=
            element(y.tensor(), r * s.outputs + o) *
            w_values[static_cast<size_t>(o * s.inputs + i)];
  EXPECT_TRUE(near(values(dx.tensor()), expected, rounding(dtype) + 1e-5));
  EXPECT_TRUE(backend.workspace_intact());
}

TEST_P(LinearTest, few_rows) {
  const DType dtype = GetParam();
  for (const InstructionSet& set : instruction_sets())
    for (const Sizes& s : {Sizes{1, 1, 1}, Sizes{2, 5, 17}, Sizes{3, 96, 33}, Sizes{4, 257, 31},
                           Sizes{7, 64, 48}, Sizes{11, 130, 50}}) {
      SCOPED_TRACE(fmt::format("{} {} rows {} inputs {} outputs {}", set.name, dtype_name(dtype),
                               s.rows, s.inputs, s.outputs));
      const Memory x = random_memory(dtype, {s.rows, s.inputs}, 1);
      const Memory w = random_memory(dtype, {s.outputs, s.inputs}, 2);
      const Memory bias = random_memory(dtype, {s.outputs}, 3);
      const Memory y(dtype, {s.rows, s.outputs}), alone(dtype, {s.rows, s.outputs});
      Backend together(2, set), single(1, set);
      Values expected = product(values(x.tensor()), values(w.tensor()), s);
      together.ops().linear_few(x.tensor(), w.tensor(), {}, y.tensor());
      EXPECT_TRUE(near(values(y.tensor()), expected, rounding(dtype) + 2e-6));
      for (size_t i = 0; i < expected.size(); ++i)
        expected[i] += element(bias.tensor(), static_cast<int64_t>(i) % s.outputs);
      together.ops().linear_few(x.tensor(), w.tensor(), bias.tensor(), y.tensor());
      EXPECT_TRUE(near(values(y.tensor()), expected, rounding(dtype) + 2e-6));
      for (int64_t r = 0; r < s.rows; ++r)
        single.ops().linear_few(x.tensor().rows(r, 1), w.tensor(), bias.tensor(),
                                alone.tensor().rows(r, 1));
      EXPECT_TRUE(same_bytes(y.tensor(), alone.tensor())) << "rows or threads matter";
      EXPECT_TRUE(y.guard_intact() && alone.guard_intact());
    }
}

INSTANTIATE_TEST_SUITE_P(types, LinearTest, testing::ValuesIn(storage_types),
                         [](const auto& tested) { return std::string(dtype_name(tested.param)); });

TEST(LinearWorkspace, a_missing_workspace_is_an_internal_error) {
  Backend backend(1, instruction_sets().front());
  const Memory x = random_memory(DType::bf16, {4, 8}, 1), w = random_memory(DType::bf16, {8, 8}, 2);
  const Memory y(DType::bf16, {4, 8});
  EXPECT_THROW(backend.ops().linear(x.tensor(), w.tensor(), {}, y.tensor()), Error);
}

TEST(CpuBackend, unknown_and_missing_instruction_sets_are_told_apart) {
  try {
    make_cpu_ops(1, "sse9");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
  }
  const std::string description = make_cpu_ops(2, "avx2")->description();
  EXPECT_EQ(description, "cpu, avx2, 2 threads");
}

}  // namespace
}  // namespace rankine::test

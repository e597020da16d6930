#include "unit/ops/attention_reference.h"
#include "unit/ops/support.h"

namespace rankine::test {
namespace {

using Values = std::vector<double>;

// Batch, tokens, heads, kv_heads, head_dim, window: ragged lengths, grouped heads, every head size
// that needs padding somewhere, windows smaller and larger than a tile.
const AttentionShape all_shapes[] = {
    {1, 1, 1, 1, 8, 0},     {2, 37, 2, 2, 16, 0},    {1, 130, 4, 2, 64, 0}, {1, 300, 2, 1, 80, 0},
    {1, 257, 6, 2, 32, 17}, {1, 200, 2, 2, 128, 64}, {1, 61, 1, 1, 256, 0}, {1, 97, 3, 3, 96, 5},
    {1, 10, 2, 1, 20, 0},   {1, 400, 1, 1, 8, 130},  {1, 129, 1, 1, 64, 1}, {2, 144, 8, 2, 40, 50}};

// All of them, and again with documents of 1 to 90 tokens.
const std::vector<AttentionShape>& all_cases() {
  static std::vector<std::vector<int32_t>> first_keys;
  static const std::vector<AttentionShape> cases = [] {
    std::vector<AttentionShape> out(std::begin(all_shapes), std::end(all_shapes));
    for (AttentionShape s : all_shapes) {
      std::vector<int32_t>& keys = first_keys.emplace_back();
      int32_t first = 0;
      for (int64_t row = 0, left = 0; row < s.rows(); ++row, --left) {
        const int64_t token = row % s.tokens;
        if (token == 0 || left == 0) {
          first = static_cast<int32_t>(token);
          left = 1 + (row * 37 + 11) % 90;
        }
        keys.push_back(first);
      }
      s.first_keys = {keys.data(), DType::i32, Shape{s.batch, s.tokens}};
      out.push_back(s);
    }
    return out;
  }();
  return cases;
}

std::string label(const InstructionSet& set, DType dtype, const AttentionShape& s) {
  return fmt::format("{} {} batch {} tokens {} heads {}/{} head size {} window {}{}", set.name,
                     dtype_name(dtype), s.batch, s.tokens, s.heads, s.kv_heads, s.head_dim,
                     s.window, s.first_keys.empty() ? "" : " documents");
}

Memory rounded(DType dtype, const Shape& shape, const Values& from) {
  Memory memory(dtype, shape);
  for (size_t i = 0; i < from.size(); ++i)
    set_element(memory.tensor(), static_cast<int64_t>(i), static_cast<float>(from[i]));
  return memory;
}

// The columns of heads [first, first + count) of qkv-like rows.
Values heads_of(const AttentionShape& s, const Values& qkv, int64_t first, int64_t count) {
  Values out;
  for (int64_t r = 0; r < s.rows(); ++r)
    for (int64_t c = first * s.head_dim; c < (first + count) * s.head_dim; ++c)
      out.push_back(qkv[static_cast<size_t>(r * s.qkv_width() + c)]);
  return out;
}

class AttentionTest : public testing::TestWithParam<DType> {
 protected:
  Memory qkv_of(const AttentionShape& s) const {
    return random_memory(GetParam(), {s.rows(), s.qkv_width()}, 11, 2.0f);
  }
  Shape out_shape(const AttentionShape& s) const { return {s.rows(), s.heads * s.head_dim}; }
};

TEST_P(AttentionTest, forward) {
  const DType dtype = GetParam();
  for (const AttentionShape& s : all_cases()) {
    const Memory qkv = qkv_of(s);
    const ReferenceAttention expected = reference_attention(s, values(qkv.tensor()));
    for (const InstructionSet& set : instruction_sets()) {
      SCOPED_TRACE(label(set, dtype, s));
      Backend backend(2, set);
      backend.reserve(backend.ops().attention_workspace(s, dtype));
      const Memory out(dtype, out_shape(s)), lse(DType::f32, {s.batch, s.heads, s.tokens});
      backend.ops().attention(s, qkv.tensor(), out.tensor(), lse.tensor());
      EXPECT_TRUE(near(values(out.tensor()), expected.out, 2 * rounding(dtype) + 1e-6));
      EXPECT_TRUE(near(values(lse.tensor()), expected.lse, 2e-6));
      EXPECT_TRUE(backend.workspace_intact() && out.guard_intact() && lse.guard_intact());
    }
  }
}

TEST_P(AttentionTest, gradient) {
  const DType dtype = GetParam();
  for (const AttentionShape& s : all_cases()) {
    const Memory qkv = qkv_of(s), dout = random_memory(dtype, out_shape(s), 12);
    const ReferenceAttention forward = reference_attention(s, values(qkv.tensor()));
    const Values expected = reference_attention_grad(forward, values(dout.tensor()));
    const Memory out = rounded(dtype, out_shape(s), forward.out);
    const Memory lse = rounded(DType::f32, {s.batch, s.heads, s.tokens}, forward.lse);
    for (const InstructionSet& set : instruction_sets()) {
      SCOPED_TRACE(label(set, dtype, s));
      Backend backend(2, set);
      backend.reserve(backend.ops().attention_workspace(s, dtype));
      const Memory dqkv(dtype, {s.rows(), s.qkv_width()});
      backend.ops().attention_grad(s, qkv.tensor(), out.tensor(), dout.tensor(), lse.tensor(),
                                   dqkv.tensor());
      const Values got = values(dqkv.tensor());
      // With one visible key the gradients of q and k vanish: then compare in absolute terms.
      const double floor = s.tokens == 1 || s.window == 1 ? 1 : 0;
      const double tolerance = 4 * rounding(dtype) + 3e-6;
      for (const auto& [first, count] : {std::pair{int64_t{0}, s.heads},
                                         {s.heads, s.kv_heads},
                                         {s.heads + s.kv_heads, s.kv_heads}}) {
        EXPECT_TRUE(near(heads_of(s, got, first, count), heads_of(s, expected, first, count),
                         tolerance, floor))
            << "heads from " << first;
      }
      EXPECT_TRUE(backend.workspace_intact() && dqkv.guard_intact());
    }
  }
}

TEST_P(AttentionTest, results_do_not_depend_on_the_number_of_threads) {
  const DType dtype = GetParam();
  for (const AttentionShape& s :
       {AttentionShape{1, 300, 4, 2, 64, 0}, AttentionShape{1, 500, 1, 1, 32, 100}})
    for (const InstructionSet& set : instruction_sets()) {
      SCOPED_TRACE(label(set, dtype, s));
      const Memory qkv = qkv_of(s), dout = random_memory(dtype, out_shape(s), 13);
      std::vector<Memory> outs, lses, dqkvs;
      for (const int threads : {1, 2, 5}) {
        Backend backend(threads, set);
        backend.reserve(backend.ops().attention_workspace(s, dtype));
        const Memory& out = outs.emplace_back(dtype, out_shape(s));
        const Memory& lse = lses.emplace_back(DType::f32, Shape{s.batch, s.heads, s.tokens});
        const Memory& dqkv = dqkvs.emplace_back(dtype, Shape{s.rows(), s.qkv_width()});
        backend.ops().attention(s, qkv.tensor(), out.tensor(), lse.tensor());
        backend.ops().attention_grad(s, qkv.tensor(), out.tensor(), dout.tensor(), lse.tensor(),
                                     dqkv.tensor());
        EXPECT_TRUE(same_bytes(out.tensor(), outs.front().tensor()));
        EXPECT_TRUE(same_bytes(lse.tensor(), lses.front().tensor()));
        EXPECT_TRUE(same_bytes(dqkv.tensor(), dqkvs.front().tensor()));
      }
    }
}

INSTANTIATE_TEST_SUITE_P(types, AttentionTest, testing::ValuesIn(storage_types),
                         [](const auto& tested) { return std::string(dtype_name(tested.param)); });

TEST(AttentionReference, gradient_is_the_slope_of_forward) {
  const AttentionShape s{1, 7, 4, 2, 4, 3};
  Values qkv = values(random_memory(DType::f32, {s.rows(), s.qkv_width()}, 14, 2.0f).tensor());
  const Values dout =
      values(random_memory(DType::f32, {s.rows(), s.heads * s.head_dim}, 15).tensor());
  const Values gradient = reference_attention_grad(reference_attention(s, qkv), dout);
  const auto objective = [&](const Values& x) {
    const Values out = reference_attention(s, x).out;
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += out[i] * dout[i];
    return sum;
  };
  for (size_t i = 0; i < qkv.size(); ++i)
    EXPECT_NEAR(slope(qkv, i, objective), gradient[i], 1e-8) << "element " << i;
}

TEST(AttentionShapeCheck, heads_must_be_a_multiple_of_kv_heads) {
  Backend backend(1, instruction_sets().front());
  EXPECT_THROW(backend.ops().attention_workspace({1, 4, 3, 2, 8, 0}, DType::f32), Error);
}

}  // namespace
}  // namespace rankine::test

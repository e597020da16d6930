#include "unit/ops/pointwise_support.h"

namespace rankine::test {
namespace {

struct RopeCase {
  RopeShape shape;
  int64_t rows, width, positions;
};
const RopeCase cases[] = {
    {{.tokens = 5, .first_position = 3, .rotated_heads = 3, .head_dim = 8}, 10, 40, 8},
    {{.tokens = 7, .rotated_heads = 2, .head_dim = 20}, 7, 60, 9},
    {{.tokens = 40, .rotated_heads = 6, .head_dim = 64}, 80, 512, 40}};

Owned angle_table(const RopeCase& c) {
  const int64_t half = c.shape.head_dim / 2;
  Values table;
  for (int64_t p = 0; p < c.positions; ++p)
    for (const bool sine : {false, true})
      for (int64_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(p) / (1.0 + static_cast<double>(i));
        table.push_back(sine ? std::sin(angle) : std::cos(angle));
      }
  return {DType::f32, {c.positions, c.shape.head_dim}, table};
}

Values reference(const RopeCase& c, const Values& table, const Values& qkv) {
  Values out = qkv;
  const int64_t dim = c.shape.head_dim, half = dim / 2;
  for (int64_t r = 0; r < c.rows; ++r)
    for (int64_t h = 0; h < c.shape.rotated_heads; ++h)
      for (int64_t i = 0; i < half; ++i) {
        const int64_t position = c.shape.first_position + r % c.shape.tokens;
        const auto a = static_cast<size_t>(r * c.width + h * dim + i),
                   b = a + static_cast<size_t>(half);
        const auto at = static_cast<size_t>(position * dim + i);
        const double cosine = table[at], sine = table[at + static_cast<size_t>(half)];
        out[a] = qkv[a] * cosine - qkv[b] * sine;
        out[b] = qkv[b] * cosine + qkv[a] * sine;
      }
  return out;
}

TEST(Rope, AgreesWithF64AndTurnsBack) {
  on_all([](Ops& ops, DType dtype) {
    for (const RopeCase& c : cases) {
      const Owned table = angle_table(c), qkv = random_tensor(dtype, {c.rows, c.width}, 1);
      const Values before = qkv.values();
      ops.rope(c.shape, table, qkv, false);
      expect_near(qkv.values(), reference(c, table.values(), before), {dtype, 4, 2});
      ASSERT_TRUE(qkv.guard_intact());
      ops.rope(c.shape, table, qkv, true);
      expect_near(qkv.values(), before, {dtype, 8 + 2 * rounding(dtype) / 0x1p-24, 2});
    }
  });
}

TEST(Rope, InverseIsTheBackward) {
  on_all([](Ops& ops, DType dtype) {
    for (const RopeCase& c : cases) {
      const Owned table = angle_table(c), gradient = random_tensor(dtype, {c.rows, c.width}, 2);
      const Values dy = gradient.values();
      ops.rope(c.shape, table, gradient, true);
      expect_gradient(gradient.values(), random_tensor(dtype, {c.rows, c.width}, 1).values(),
                      [&](const Values& x) { return dot(reference(c, table.values(), x), dy); },
                      {dtype, 4, 2});
    }
  });
}

TEST(Rope, DoesNotDependOnThreads) {
  same_for_any_threads([](Ops& ops, DType dtype) {
    const RopeCase& c = cases[2];
    const Owned table = angle_table(c), qkv = random_tensor(dtype, {c.rows, c.width}, 1);
    ops.rope(c.shape, table, qkv, false);
    return qkv.bits();
  });
}

TEST(Rope, RefusesPositionsBeyondTheTable) {
  RopeCase c = cases[0];
  const Owned table = angle_table(c), qkv(DType::f32, {c.rows, c.width});
  c.shape.first_position = 4;
  EXPECT_THROW(make_cpu_ops(1)->rope(c.shape, table, qkv, false), Error);
}

}  // namespace
}  // namespace rankine::test

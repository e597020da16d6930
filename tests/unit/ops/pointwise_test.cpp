#include "unit/ops/pointwise_support.h"

namespace rankine::test {
namespace {

const int64_t counts[] = {1, 7, 33, 4096, 4100, 20001};

TEST(Cast, RoundsLikeScalarConversion) {
  on_all([](Ops& ops, DType from_type) {
    for (const DType to_type : storage_types)
      for (const int64_t count : counts) {
        const Owned from = random_tensor(from_type, {count}, 1, 100), to(to_type, {count});
        ops.cast(from, to);
        const Owned expected(to_type, {count}, from.values());
        ASSERT_TRUE(to.bits() == expected.bits()) << dtype_name(to_type) << " " << count;
      }
  });
}

TEST(Cast, KeepsInfinitiesAndNans) {
  on_all([](Ops& ops, DType dtype) {
    const double inf = std::numeric_limits<double>::infinity();
    const Owned from(DType::f32, {4}, {inf, -inf, std::nan(""), 1e30}), to(dtype, {4});
    ops.cast(from, to);
    const Values got = to.values();
    EXPECT_EQ(got[0], inf);
    EXPECT_EQ(got[1], -inf);
    EXPECT_TRUE(std::isnan(got[2]));
    EXPECT_EQ(std::isinf(got[3]), dtype == DType::f16);
  });
}

TEST(Fill, SetsEveryElement) {
  on_all([](Ops& ops, DType dtype) {
    for (const int64_t count : counts) {
      const Owned x(dtype, {count});
      ops.fill(x, -1.5f);
      ASSERT_EQ(x.values(), Values(static_cast<size_t>(count), -1.5));
      ASSERT_TRUE(x.guard_intact());
    }
    const Owned wide(DType::f64, {5});
    ops.fill(wide, 0.25f);
    EXPECT_EQ(wide.values(), Values(5, 0.25));
  });
}

TEST(Add, AgreesWithF64AlsoInPlace) {
  on_all([](Ops& ops, DType dtype) {
    for (const int64_t count : counts) {
      const Owned a = random_tensor(dtype, {count}, 1), b = random_tensor(dtype, {count}, 2);
      const Owned y(dtype, {count});
      ops.add(a, b, y);
      expect_near(y.values(), plus(a.values(), b.values()), {dtype, 1, 2});
      ops.add(a, b, a);
      ASSERT_TRUE(a.bits() == y.bits());
      ASSERT_TRUE(y.guard_intact());
    }
  });
}

TEST(BiasGrad, AgreesWithF64AndAccumulates) {
  on_all([](Ops& ops, DType dtype) {
    for (const auto& [rows, width] :
         {std::array<int64_t, 2>{1, 16}, {3, 20}, {257, 33}, {70, 8192}}) {
      const Owned dy = random_tensor(dtype, {rows, width}, 1), db(DType::f32, {width});
      const Workspace space(ops, ops.linear_workspace(rows, 16, width, dtype));
      Values expected(static_cast<size_t>(width));
      const Values contents = dy.values();
      for (size_t i = 0; i < contents.size(); ++i)
        expected[i % static_cast<size_t>(width)] += contents[i];
      const Tolerance tolerance{.magnitude = std::sqrt(static_cast<double>(rows)) * 4};
      ops.bias_grad(dy, db, false);
      expect_near(db.values(), expected, tolerance);
      ops.bias_grad(dy, db, true);
      expect_near(db.values(), plus(expected, expected), tolerance);
    }
  });
}

TEST(BiasGrad, DoesNotDependOnThreads) {
  same_for_any_threads([](Ops& ops, DType dtype) {
    const Owned dy = random_tensor(dtype, {1000, 50}, 1), db(DType::f32, {50});
    const Workspace space(ops, ops.linear_workspace(1000, 16, 50, dtype));
    ops.bias_grad(dy, db, false);
    return db.bits();
  });
}

constexpr Dropout example{.probability = 0.3f, .key = {17, 4}, .stream = 5, .first_index = 1 << 20};

TEST(Dropout, FollowsPhilox) {
  on_all([](Ops& ops, DType dtype) {
    for (const int64_t count : counts) {
      const Owned x = random_tensor(dtype, {count}, 1);
      Values expected = x.values();
      for (size_t i = 0; i < expected.size(); ++i) {
        const uint64_t index = example.first_index + i;
        const uint32_t word = philox(example.key, index / 4, example.stream)[index % 4];
        expected[i] *= unit_float(word) < example.probability ? 0 : 1 / (1 - 0.3);
      }
      ops.dropout(x, example);
      expect_near(x.values(), expected, {dtype, 4, 2});
      ASSERT_TRUE(x.guard_intact());
    }
  });
}

TEST(Dropout, KeepsTheExpectedShareWithTheSameMaskEachTime) {
  on_all([](Ops& ops, DType dtype) {
    constexpr int64_t count = 100000;
    const Owned x(dtype, {count}), dx(dtype, {count});
    ops.fill(x, 1);
    ops.fill(dx, 2);
    ops.dropout(x, example);
    ops.dropout(dx, example);
    int64_t kept = 0;
    const Values forward = x.values(), backward = dx.values();
    for (size_t i = 0; i < forward.size(); ++i) {
      ASSERT_EQ(forward[i] == 0, backward[i] == 0) << "element " << i;
      kept += forward[i] != 0;
    }
    // Six standard deviations of a binomial share.
    EXPECT_NEAR(static_cast<double>(kept) / count, 0.7, 6 * std::sqrt(0.21 / count));
    Dropout other = example;
    other.stream = 6;
    ops.fill(dx, 1);
    ops.dropout(dx, other);
    EXPECT_FALSE(dx.bits() == x.bits()) << "another stream gives another mask";
  });
}

TEST(Dropout, DoesNotDependOnTheCutOrThreads) {
  same_for_any_threads([](Ops& ops, DType dtype) {
    constexpr int64_t count = 30001, cut = 10004;
    const Owned whole = random_tensor(dtype, {count}, 1), parts = random_tensor(dtype, {count}, 1);
    ops.dropout(whole, example);
    Dropout second = example;
    second.first_index += cut;
    ops.dropout(parts.tensor().range(0, cut), example);
    ops.dropout(parts.tensor().range(cut, count - cut), second);
    EXPECT_TRUE(whole.bits() == parts.bits());
    return whole.bits();
  });
}

}  // namespace
}  // namespace rankine::test

#include "unit/ops/pointwise_support.h"

namespace rankine::test {
namespace {

struct Sizes {
  int64_t rows, vocabulary, padded;
};
const Sizes all_sizes[] = {{3, 5, 5}, {4, 17, 32}, {7, 1000, 1024}, {2, 50257, 50304}};

// Ignores every third row.
std::vector<int32_t> targets_for(const Sizes& sizes) {
  std::vector<int32_t> targets;
  for (int64_t r = 0; r < sizes.rows; ++r)
    targets.push_back(r % 3 == 1 ? -100 : static_cast<int32_t>(r * 7919 % sizes.vocabulary));
  return targets;
}

Values reference(const Sizes& sizes, const Values& logits, const std::vector<int32_t>& targets) {
  Values losses;
  for (size_t r = 0; r < targets.size(); ++r) {
    const double* row = logits.data() + r * static_cast<size_t>(sizes.padded);
    double total = 0;
    for (int64_t i = 0; i < sizes.vocabulary; ++i) total += std::exp(row[i]);
    losses.push_back(targets[r] < 0 ? 0 : std::log(total) - row[targets[r]]);
  }
  return losses;
}

template <class Body>
void on_all_sizes(const Body& body) {
  on_all([&](Ops& ops, DType dtype) {
    for (const Sizes& sizes : all_sizes) {
      SCOPED_TRACE(fmt::format("{} rows of {} in {}", sizes.rows, sizes.vocabulary, sizes.padded));
      const Owned logits = random_tensor(dtype, {sizes.rows, sizes.padded}, 1, 8);
      body(ops, sizes, logits);
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(CrossEntropy, AgreesWithF64) {
  on_all_sizes([](Ops& ops, const Sizes& sizes, const Owned& logits) {
    const std::vector<int32_t> targets = targets_for(sizes);
    const Owned at = indices(targets), losses(DType::f32, {sizes.rows});
    const std::string before = logits.bits();
    ops.cross_entropy({.vocabulary = sizes.vocabulary, .gradient = false}, logits, at, losses);
    expect_near(losses.values(), reference(sizes, logits.values(), targets), {.magnitude = 16});
    EXPECT_TRUE(logits.bits() == before) << "without the gradient the logits stay";
  });
}

TEST(CrossEntropy, GradientAgreesWithDifferences) {
  on_all_sizes([](Ops& ops, const Sizes& sizes, const Owned& logits) {
    const DType dtype = logits.tensor().dtype;
    const std::vector<int32_t> targets = targets_for(sizes);
    const Owned at = indices(targets), losses(DType::f32, {sizes.rows});
    const Values before = logits.values();
    constexpr float scale = 0.25f;
    ops.cross_entropy({.vocabulary = sizes.vocabulary, .gradient_scale = scale}, logits, at,
                      losses);
    expect_near(losses.values(), reference(sizes, before, targets), {.magnitude = 16});
    const Values gradient = logits.values();
    expect_gradient(gradient, before,
                    [&](const Values& x) {
                      double total = 0;
                      for (const double loss : reference(sizes, x, targets)) total += scale * loss;
                      return total;
                    },
                    {dtype, 8, 0.5});
    for (size_t i = 0; i < gradient.size(); ++i) {
      const size_t row = i / static_cast<size_t>(sizes.padded);
      const auto column = static_cast<int64_t>(i) % sizes.padded;
      if (targets[row] < 0 || column >= sizes.vocabulary) {
        ASSERT_EQ(gradient[i], 0) << "ignored row or padding, element " << i;
      }
    }
    for (size_t r = 0; r < targets.size(); ++r) {
      if (targets[r] < 0) continue;
      const auto target = static_cast<size_t>(targets[r]);
      ASSERT_LT(gradient[r * static_cast<size_t>(sizes.padded) + target], 0) << "row " << r;
    }
  });
}

TEST(CrossEntropy, LargeLogitsAndCertainTargets) {
  for (const std::string& set : pointwise_sets()) {
    const Owned logits(DType::f32, {2, 3}, {1000, 990, -1000, -3000, -3020, -3000});
    const Owned at = indices({0, 1}), losses(DType::f32, {2});
    make_cpu_ops(1, set)->cross_entropy({.vocabulary = 3, .gradient_scale = 1}, logits, at, losses);
    const double tail = std::exp(-10.0), share = 1 / (2 + std::exp(-20.0));
    expect_near(losses.values(), {std::log1p(tail), 20 - std::log(share)}, {.magnitude = 1});
    const Values gradient = logits.values();
    EXPECT_NEAR(gradient[0], -tail / (1 + tail), 1e-7);
    EXPECT_NEAR(gradient[4], -1, 1e-6);
    EXPECT_NEAR(gradient[3], share, 1e-6);
  }
}

TEST(CrossEntropy, NansAndInfinitiesReachTheLossAndTheGradient) {
  on_all([](Ops& ops, DType dtype) {
    for (const double poison : {std::nan(""), std::numeric_limits<double>::infinity()}) {
      Values contents(40, 0.5);
      contents[33] = poison;
      const Owned logits(dtype, {1, 40}, contents), at = indices({2}), losses(DType::f32, {1});
      ops.cross_entropy({.vocabulary = 40, .gradient_scale = 1}, logits, at, losses);
      EXPECT_FALSE(std::isfinite(losses.values()[0]));
      EXPECT_FALSE(std::isfinite(logits.values()[0]));
    }
  });
}

TEST(CrossEntropy, DoesNotDependOnThreads) {
  same_for_any_threads([](Ops& ops, DType dtype) {
    const Sizes sizes = all_sizes[2];
    const Owned logits = random_tensor(dtype, {sizes.rows, sizes.padded}, 1, 8);
    const Owned at = indices(targets_for(sizes)), losses(DType::f32, {sizes.rows});
    ops.cross_entropy({.vocabulary = sizes.vocabulary, .gradient_scale = 1}, logits, at, losses);
    return logits.bits() + losses.bits();
  });
}

// Columns [first, first + width) of each row.
Values columns_of(const Values& rows, int64_t row_width, int64_t first, int64_t width) {
  Values out;
  for (size_t r = 0; r < rows.size(); r += static_cast<size_t>(row_width))
    out.insert(out.end(), rows.begin() + static_cast<int64_t>(r) + first,
               rows.begin() + static_cast<int64_t>(r) + first + width);
  return out;
}

TEST(CrossEntropy, PartsOfTheVocabularyAgreeWithTheWhole) {
  on_all_sizes([](Ops& ops, const Sizes& sizes, const Owned& logits) {
    const DType dtype = logits.tensor().dtype;
    const Values before = logits.values();
    const std::vector<int32_t> targets = targets_for(sizes);
    const Owned at = indices(targets), losses(DType::f32, {sizes.rows});
    const CrossEntropy whole{.vocabulary = sizes.vocabulary, .gradient_scale = 0.25f};
    ops.cross_entropy(whole, logits, at, losses);
    // The last part may hold nothing but padding.
    constexpr int64_t parts = 3;
    const int64_t width = sizes.padded / 2;
    std::vector<Owned> held;
    std::vector<VocabularyPart> ranges;
    const Owned statistics(DType::f64, {parts, sizes.rows, 3});
    for (int64_t p = 0; p < parts; ++p) {
      const int64_t first = p * width, real = std::min(width, sizes.padded - first);
      Values contents = columns_of(before, sizes.padded, std::min(first, sizes.padded - 1),
                                   std::max<int64_t>(1, real));
      held.emplace_back(dtype, Shape{sizes.rows, std::max<int64_t>(1, real)}, contents);
      ranges.push_back({first, std::clamp<int64_t>(sizes.vocabulary - first, 0, real)});
      const Tensor all = statistics;
      ops.cross_entropy_statistics(ranges.back(), held.back(), at,
                                   all.range(p * sizes.rows * 3, sizes.rows * 3));
    }
    for (size_t p = 0; p < parts; ++p) {
      const Owned joined(DType::f32, {sizes.rows});
      ops.cross_entropy_joined(whole, ranges[p], held[p], at, statistics, joined);
      expect_near(joined.values(), losses.values(), {.magnitude = 16});
      const int64_t have = held[p].tensor().shape[1];
      if (ranges[p].columns > 0)
        expect_near(held[p].values(),
                    columns_of(logits.values(), sizes.padded, ranges[p].first, have),
                    {dtype, 64, 0.25});
      else
        EXPECT_EQ(held[p].values(), Values(held[p].values().size(), 0.0));
    }
  });
}

TEST(CrossEntropy, RefusesTargetsOutsideTheVocabulary) {
  const Owned logits(DType::f32, {1, 8}), at = indices({5}), losses(DType::f32, {1});
  EXPECT_THROW(make_cpu_ops(1)->cross_entropy({.vocabulary = 5}, logits, at, losses), Error);
}

}  // namespace
}  // namespace rankine::test

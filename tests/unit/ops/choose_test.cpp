#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "unit/ops/pointwise_support.h"

namespace rankine::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

struct Row {
  std::vector<int32_t> ids;  // that may be chosen, in order
  Values weights;
};

// What is left of the logits, by sorting all of them, in f64.
Row reference(const TokenChoice& choice, const Values& logits) {
  std::vector<int32_t> order;
  for (int32_t id = 0; id < choice.vocabulary; ++id)
    if (std::ranges::find(choice.forbidden, id) == choice.forbidden.end()) order.push_back(id);
  const auto logit = [&](int32_t id) { return logits[static_cast<size_t>(id)]; };
  std::ranges::stable_sort(order, [&](int32_t a, int32_t b) { return logit(a) > logit(b); });
  if (choice.temperature == 0) return {{order[0]}, {1}};
  if (choice.top_k > 0 && choice.top_k < static_cast<int64_t>(order.size()))
    order.resize(static_cast<size_t>(choice.top_k));
  std::map<int32_t, double> weights;
  double total = 0, kept = 0;
  for (const int32_t id : order)
    total += weights[id] = std::exp((logit(id) - logit(order[0])) / choice.temperature);
  size_t count = 0;
  while (count < order.size() && (choice.top_p == 1 || kept < choice.top_p * total))
    kept += weights[order[count++]];
  order.resize(count);
  std::ranges::sort(order);
  Row row{order, {}};
  for (const int32_t id : order) row.weights.push_back(weights[id]);
  return row;
}

// Whether `token` is the one at this place; places next to a border may fall to either side.
void expect_at(const Row& row, double at, int32_t token) {
  const auto found = std::ranges::lower_bound(row.ids, token);
  ASSERT_TRUE(found != row.ids.end() && *found == token) << "token " << token << " is left out";
  const auto before = static_cast<std::ptrdiff_t>(found - row.ids.begin());
  const double total = std::reduce(row.weights.begin(), row.weights.end());
  const double begin = std::reduce(row.weights.begin(), row.weights.begin() + before) / total;
  const double end = begin + row.weights[static_cast<size_t>(before)] / total;
  EXPECT_GE(at, begin - 1e-5) << "token " << token;
  EXPECT_LE(at, end + 1e-5) << "token " << token;
}

std::vector<int32_t> choose(Ops& ops, const TokenChoice& choice, const Tensor& logits,
                            const Values& places) {
  const Workspace space(
      ops, ops.choose_workspace(static_cast<int64_t>(places.size()), choice.vocabulary));
  std::vector<int32_t> tokens(places.size());
  ops.choose_tokens(choice, logits, places, tokens);
  return tokens;
}

// A row of a flat or a steep distribution in each of a few places, many logits equal in bf16.
Owned rows_of_logits(DType dtype, int64_t rows, int64_t width) {
  Owned logits = random_tensor(dtype, {rows, width}, 3, 1);
  for (int64_t i = 0; i < rows * width; ++i) {
    const float x = element(logits, i), steep = (i / width) % 2 == 0 ? 1.0f : 40.0f;
    set_element(logits, i, steep * x * std::abs(x) - 5);
  }
  return logits;
}

constexpr int64_t widths[] = {1, 7, 64, 1000, 3001};
const TokenChoice choices[] = {{.temperature = 1},
                               {.temperature = 0},
                               {.temperature = 0.8, .top_p = 0.95},
                               {.temperature = 1, .top_p = 0.5},
                               {.temperature = 3, .top_p = 0.03},
                               {.temperature = 0.8, .top_k = 1},
                               {.temperature = 1, .top_k = 50},
                               {.temperature = 2, .top_k = 2999},
                               {.temperature = 1, .top_k = 200, .top_p = 0.9},
                               {.temperature = 1e-4, .top_p = 0.9},
                               {.temperature = 1e6, .top_k = 500, .top_p = 0.37}};

TEST(ChooseTokens, AgreesWithSortingInF64) {
  int64_t compared = 0;
  on_all([&](Ops& ops, DType dtype) {
    for (const int64_t width : widths)
      for (TokenChoice choice : choices) {
        const Values places{0, 0.1, 0.3, 0.5, 0.77, 0.9, 0.999999};
        const auto rows = static_cast<int64_t>(places.size());
        const Owned logits = rows_of_logits(dtype, rows, width + 3);
        const std::array forbidden{static_cast<int32_t>(width / 2),
                                   static_cast<int32_t>(width - 1)};
        choice.vocabulary = width;
        if (width > 3) choice.forbidden = forbidden;
        SCOPED_TRACE(fmt::format("{} tokens, temperature {}, top-k {}, top-p {}", width,
                                 choice.temperature, choice.top_k, choice.top_p));
        const std::string before = logits.bits();
        const std::vector<int32_t> tokens = choose(ops, choice, logits, places);
        EXPECT_TRUE(logits.bits() == before) << "the logits stay";
        for (int64_t r = 0; r < rows; ++r) {
          const Values row = values(logits.tensor().rows(r, 1));
          TokenChoice less = choice, more = choice;
          if (choice.top_p < 1) {
            less.top_p *= 1 - 1e-5;
            more.top_p *= 1 + 1e-5;
          }
          // Which token is the last one of top-p may depend on rounding.
          if (reference(less, row).ids != reference(more, row).ids) continue;
          expect_at(reference(choice, row), places[static_cast<size_t>(r)],
                    tokens[static_cast<size_t>(r)]);
          ++compared;
        }
        if (testing::Test::HasFailure()) return;
      }
  });
  EXPECT_GT(compared, 500);
}

TEST(ChooseTokens, DrawsFollowTheSoftmax) {
  const Values logits{1, 3, 2, 3, -5};
  const auto ops = make_cpu_ops(1);
  constexpr int count = 20000;
  Values places;
  for (int i = 0; i < count; ++i) places.push_back((i + 0.5) / count);
  Values all;
  for (int i = 0; i < count; ++i) all.insert(all.end(), logits.begin(), logits.end());
  const Owned rows(DType::f32, {count, 5}, all);
  const std::vector<int32_t> tokens = choose(*ops, {.vocabulary = 5}, rows, places);
  double total = 0;
  for (const double x : logits) total += std::exp(x);
  for (int32_t id = 0; id < 5; ++id)
    EXPECT_NEAR(static_cast<double>(std::ranges::count(tokens, id)) / count,
                std::exp(logits[static_cast<size_t>(id)]) / total, 2.0 / count)
        << "token " << id;
}

TEST(ChooseTokens, EqualLogitsAreTakenInOrderOfTheirIds) {
  const auto ops = make_cpu_ops(2);
  const Owned flat(DType::bf16, {1, 300}, Values(300, 2.5));
  std::set<int32_t> by_count, by_mass;
  for (int i = 0; i < 200; ++i) {
    const Values at{(i + 0.5) / 200};
    by_count.insert(choose(*ops, {.vocabulary = 300, .top_k = 10}, flat, at)[0]);
    by_mass.insert(choose(*ops, {.vocabulary = 300, .top_p = 0.0999}, flat, at)[0]);
  }
  const auto first = [](int32_t count) {
    std::set<int32_t> ids;
    for (int32_t id = 0; id < count; ++id) ids.insert(id);
    return ids;
  };
  EXPECT_EQ(by_count, first(10));
  EXPECT_EQ(by_mass, first(30));
  EXPECT_EQ(choose(*ops, {.vocabulary = 300, .temperature = 0}, flat, {0.5})[0], 0);
}

TEST(ChooseTokens, LogitsThatAreNoNumbersChooseNothing) {
  for_each_kind([](const std::string& set, DType dtype) {
    const auto ops = make_cpu_ops(2, set);
    for (const float bad : {infinity, std::nanf("")}) {
      Owned logits(dtype, {3, 40});
      set_element(logits, 40 + 33, bad);
      for (const double temperature : {0.0, 1.0})
        EXPECT_EQ(choose(*ops, {.vocabulary = 37, .temperature = temperature, .top_p = 0.1}, logits,
                         {0, 0, 0}),
                  (std::vector<int32_t>{0, -1, 0}));
      const std::array forbidden{33};
      EXPECT_EQ(choose(*ops, {.vocabulary = 37, .forbidden = forbidden}, logits, {0, 0, 0})[1], 0);
    }
    const std::array all{0, 1};
    EXPECT_EQ(choose(*ops, {.vocabulary = 2, .forbidden = all}, Owned(dtype, {1, 2}), {0})[0], -1);
  });
}

TEST(ChooseTokens, DoesNotDependOnThreads) {
  for_each_kind([](const std::string& set, DType dtype) {
    const Owned logits = rows_of_logits(dtype, 5, 2000);
    const Values places{0.2, 0.4, 0.6, 0.8, 0.99};
    const TokenChoice choice{.vocabulary = 1990, .temperature = 0.8, .top_k = 900, .top_p = 0.95};
    const auto alone = choose(*make_cpu_ops(1, set), choice, logits, places);
    for (const int threads : {2, 3, 8})
      EXPECT_EQ(choose(*make_cpu_ops(threads, set), choice, logits, places), alone) << threads;
  });
}

}  // namespace
}  // namespace rankine::test

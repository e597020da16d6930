#include "unit/ops/pointwise_support.h"

namespace rankine::test {
namespace {

constexpr int64_t vocabulary = 13, positions = 9, rows = 12;
const Ops::Embedding base{.ids = {}, .tokens = 6, .first_position = 2};
const std::vector<int32_t> ids{0, 12, 3, 3, 7, 3, 12, 1, 0, 5, 3, 11};

size_t position_of(size_t row) {
  return static_cast<size_t>(base.first_position) + row % 6;
}

TEST(Embed, AddsTheRowsOfBothTables) {
  on_all([](Ops& ops, DType dtype) {
    for (const int64_t width : {1, 16, 20, 1500}) {
      const Owned tokens = random_tensor(dtype, {vocabulary, width}, 1);
      const Owned places = random_tensor(dtype, {positions, width}, 2), y(dtype, {rows, width});
      const Owned rows_of_tokens = indices(ids);
      Ops::Embedding e = base;
      e.ids = rows_of_tokens;
      const Values token_values = tokens.values(), place_values = places.values();
      Values alone, both;
      const auto columns = static_cast<size_t>(width);
      for (size_t r = 0; r < ids.size(); ++r)
        for (size_t c = 0; c < columns; ++c) {
          alone.push_back(token_values[static_cast<size_t>(ids[r]) * columns + c]);
          both.push_back(alone.back() + place_values[position_of(r) * columns + c]);
        }
      ops.embed(e, tokens, {}, y);
      ASSERT_EQ(y.values(), alone);
      ops.embed(e, tokens, places, y);
      expect_near(y.values(), both, {dtype, 1, 2});
    }
  });
}

TEST(Embed, PartsOfTheTableAddUpToTheWhole) {
  on_all([](Ops& ops, DType dtype) {
    constexpr int64_t width = 20, cut = 5;
    const Owned tokens = random_tensor(dtype, {vocabulary, width}, 1),
                rows_of_tokens = indices(ids);
    const Owned places = random_tensor(dtype, {positions, width}, 2),
                dy = random_tensor(dtype, {rows, width}, 3);
    const Owned whole(dtype, {rows, width}), low(dtype, {rows, width}), high(dtype, {rows, width});
    const Owned sum(dtype, {rows, width});
    const Owned dwhole(DType::f32, {vocabulary, width}), dparts(DType::f32, {vocabulary, width});
    Ops::Embedding e = base;
    e.ids = rows_of_tokens;
    ops.embed(e, tokens, places, whole);
    ops.embed_grad(e, dy, dwhole, false, {}, false);
    e.vocabulary = vocabulary;
    const Tensor table = tokens, grads = dparts;
    ops.embed(e, table.rows(0, cut), places, low);
    ops.embed_grad(e, dy, grads.rows(0, cut), false, {}, false);
    e.first_token = cut;
    ops.embed(e, table.rows(cut, vocabulary - cut), {}, high);
    ops.embed_grad(e, dy, grads.rows(cut, vocabulary - cut), false, {}, false);
    ops.add(low, high, sum);
    expect_near(sum.values(), whole.values(), {dtype, 2, 4});
    EXPECT_EQ(dparts.values(), dwhole.values());
  });
}

TEST(EmbedGrad, SumsTheRowsOfEachToken) {
  on_all([](Ops& ops, DType dtype) {
    for (const int64_t width : {1, 16, 20, 1500}) {
      const Owned dy = random_tensor(dtype, {rows, width}, 1), rows_of_tokens = indices(ids);
      const Owned dtokens = random_tensor(DType::f32, {vocabulary, width}, 2);
      const Owned dplaces = random_tensor(DType::f32, {positions, width}, 3);
      Ops::Embedding e = base;
      e.ids = rows_of_tokens;
      const Values contents = dy.values();
      Values tokens(static_cast<size_t>(vocabulary * width)),
          places(static_cast<size_t>(positions * width));
      const auto columns = static_cast<size_t>(width);
      for (size_t i = 0; i < contents.size(); ++i) {
        tokens[static_cast<size_t>(ids[i / columns]) * columns + i % columns] += contents[i];
        places[position_of(i / columns) * columns + i % columns] += contents[i];
      }
      ops.embed_grad(e, dy, dtokens, false, dplaces, false);
      expect_near(dtokens.values(), tokens, {.magnitude = 4});
      expect_near(dplaces.values(), places, {.magnitude = 4});
      ops.embed_grad(e, dy, dtokens, true, dplaces, false);
      expect_near(dtokens.values(), plus(tokens, tokens), {.magnitude = 8});
      expect_near(dplaces.values(), places, {.magnitude = 4});
      ops.embed_grad(e, dy, dtokens, false, dplaces, true);
      expect_near(dplaces.values(), plus(places, places), {.magnitude = 8});
      ops.embed_grad(e, dy, dtokens, true, {}, false);
      expect_near(dtokens.values(), plus(tokens, tokens), {.magnitude = 8});
    }
  });
}

TEST(EmbedGrad, DoesNotDependOnThreads) {
  same_for_any_threads([](Ops& ops, DType dtype) {
    const Owned dy = random_tensor(dtype, {rows, 700}, 1), rows_of_tokens = indices(ids);
    const Owned dtokens(DType::f32, {vocabulary, 700}), dplaces(DType::f32, {positions, 700});
    Ops::Embedding e = base;
    e.ids = rows_of_tokens;
    ops.embed_grad(e, dy, dtokens, false, dplaces, false);
    return dtokens.bits() + dplaces.bits();
  });
}

TEST(Embed, RefusesIdsAndPositionsOutsideTheTables) {
  const std::unique_ptr<Ops> ops = make_cpu_ops(1);
  const Owned tokens(DType::f32, {12, 4}), places(DType::f32, {positions, 4});
  const Owned y(DType::f32, {rows, 4}), too_large = indices(ids);
  EXPECT_THROW(ops->embed({.ids = too_large}, tokens, {}, y), Error);
  const Owned zeros = indices(std::vector<int32_t>(rows, 0));
  EXPECT_THROW(ops->embed({.ids = zeros, .tokens = 6, .first_position = 4}, tokens, places, y),
               Error);
}

}  // namespace
}  // namespace rankine::test

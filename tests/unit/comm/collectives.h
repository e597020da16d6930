#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "comm/world.h"

// What every backend must give, as functions of one rank's communicator.
namespace rankine::test {

inline Tensor view(void* data, DType dtype, int64_t count) {
  return {data, dtype, Shape{count}};
}

// Numbers of very different size, so that the order of a sum shows in its bits.
inline std::vector<float> numbers(int rank, int64_t count) {
  std::vector<float> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) {
    const auto bits = philox(random_key(17, "numbers"), i * 64 + static_cast<uint64_t>(rank));
    out[i] = (static_cast<float>(bits[0]) / 4294967296.0f - 0.5f) *
             static_cast<float>(1 << (bits[1] % 24)) / 4096.0f;
  }
  return out;
}

// The documented tree: the largest power of two below the number of ranks goes left.
inline float tree_sum(const std::vector<float>& x, size_t low, size_t high) {
  if (high - low == 1) return x[low];
  size_t left = 1;
  while (2 * left < high - low) left *= 2;
  return tree_sum(x, low, low + left) + tree_sum(x, low + left, high);
}

inline std::vector<float> expected_sum(int ranks, int64_t count) {
  std::vector<std::vector<float>> all;
  for (int r = 0; r < ranks; ++r) all.push_back(numbers(r, count));
  std::vector<float> out(static_cast<size_t>(count)), column(static_cast<size_t>(ranks));
  for (size_t i = 0; i < out.size(); ++i) {
    for (size_t r = 0; r < column.size(); ++r) column[r] = all[r][i];
    out[i] = tree_sum(column, 0, column.size());
  }
  return out;
}

inline void check_all_reduce(Communicator& c, int64_t count) {
  std::vector<float> x = numbers(c.rank(), count);
  const std::vector<float> sum = expected_sum(c.size(), count);
  const uint64_t before = c.bytes_sent();
  c.all_reduce(view(x.data(), DType::f32, count), Reduction::sum, "test").wait();
  ASSERT_EQ(std::memcmp(x.data(), sum.data(), x.size() * 4), 0)
      << count << " elements, rank " << c.rank() << " of " << c.size();
  const auto ranks = static_cast<uint64_t>(c.size()), bytes = static_cast<uint64_t>(count) * 4;
  if (bytes > 65536 && count % c.size() == 0) {
    EXPECT_EQ(c.bytes_sent() - before, 2 * bytes * (ranks - 1) / ranks);
  }
}

inline void check_scatter_and_gather(Communicator& c, int64_t part) {
  const int64_t n = part * c.size();
  const std::vector<float> sum = expected_sum(c.size(), n);
  std::vector<float> in = numbers(c.rank(), n), out(static_cast<size_t>(part)), in_place = in;
  const float* expected = sum.data() + c.rank() * part;
  c.reduce_scatter(view(in.data(), DType::f32, n), view(out.data(), DType::f32, part), "apart")
      .wait();
  ASSERT_EQ(std::memcmp(out.data(), expected, out.size() * 4), 0);
  EXPECT_EQ(in, numbers(c.rank(), n));
  const Tensor whole = view(in_place.data(), DType::f32, n);
  const Tensor mine = whole.range(c.rank() * part, part);
  c.reduce_scatter(whole, mine, "in place").wait();
  ASSERT_EQ(std::memcmp(mine.data, expected, out.size() * 4), 0);
  const uint64_t before = c.bytes_sent();
  c.all_gather(mine, whole, "in place").wait();
  ASSERT_EQ(std::memcmp(in_place.data(), sum.data(), sum.size() * 4), 0);
  EXPECT_EQ(c.bytes_sent() - before, static_cast<uint64_t>(part * 4 * (c.size() - 1)));
  std::vector<float> all(static_cast<size_t>(n));
  c.all_gather(view(out.data(), DType::f32, part), view(all.data(), DType::f32, n), "apart").wait();
  ASSERT_EQ(std::memcmp(all.data(), sum.data(), sum.size() * 4), 0);
}

// 16-bit sums go through f32 and round once.
inline void check_bf16(Communicator& c, int64_t count) {
  std::vector<Bf16> x(static_cast<size_t>(count));
  std::vector<float> column(static_cast<size_t>(c.size()));
  std::vector<std::vector<float>> all;
  for (int r = 0; r < c.size(); ++r) all.push_back(numbers(r, count));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = from_float<Bf16>(all[static_cast<size_t>(c.rank())][i]);
  c.all_reduce(view(x.data(), DType::bf16, count), Reduction::sum, "bf16").wait();
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t r = 0; r < column.size(); ++r) column[r] = to_float(from_float<Bf16>(all[r][i]));
    const Bf16 expected = from_float<Bf16>(tree_sum(column, 0, column.size()));
    ASSERT_EQ(x[i].bits, c.size() == 1 ? from_float<Bf16>(all[0][i]).bits : expected.bits) << i;
  }
}

inline void check_small_things(Communicator& c) {
  std::vector<int64_t> counts{c.rank() + 1, -c.rank()};
  c.all_reduce(view(counts.data(), DType::i64, 2), Reduction::max, "largest").wait();
  EXPECT_EQ(counts, (std::vector<int64_t>{c.size(), 0}));
  double one = 1;
  c.all_reduce(view(&one, DType::f64, 1), Reduction::sum, "ranks").wait();
  EXPECT_EQ(one, c.size());
  for (int root = 0; root < c.size(); ++root) {
    EXPECT_EQ(broadcast_text(c, fmt::format("from {}", c.rank()), root, "text"),
              fmt::format("from {}", root));
    std::vector<int32_t> long_text(100000, c.rank());
    c.broadcast(view(long_text.data(), DType::i32, 100000), root, "long").wait();
    EXPECT_EQ(std::accumulate(long_text.begin(), long_text.end(), int64_t{0}), 100000 * root);
  }
  const std::vector<std::string> texts =
      all_gather_texts(c, std::string(static_cast<size_t>(c.rank()), 'x'), "texts");
  for (int r = 0; r < c.size(); ++r) EXPECT_EQ(texts[static_cast<size_t>(r)].size(), r);
  // Nothing at all is a legal amount.
  EXPECT_EQ(all_gather_texts(c, "", "nothing"),
            std::vector<std::string>(static_cast<size_t>(c.size())));
  const Tensor nothing{nullptr, DType::f32, Shape{0}};
  c.all_reduce(nothing, Reduction::sum, "nothing").wait();
  c.reduce_scatter(nothing, nothing, "nothing").wait();
  c.all_gather(nothing, nothing, "nothing").wait();
  c.broadcast(nothing, 0, "nothing").wait();
  c.barrier("end").wait();
}

// Sends in both directions, all started before any is waited for.
inline void check_transfers(Communicator& c, int64_t count) {
  if (c.size() == 1) return;
  const int next = (c.rank() + 1) % c.size(), before = (c.rank() + c.size() - 1) % c.size();
  std::vector<std::vector<float>> out, in;
  std::vector<Work> works;
  for (int k = 0; k < 3; ++k) {
    out.push_back(numbers(c.rank() * 10 + k, count + k));
    in.emplace_back(static_cast<size_t>(count + k));
  }
  for (size_t k = 0; k < 3; ++k)
    works.push_back(
        c.send(view(out[k].data(), DType::f32, count + static_cast<int64_t>(k)), next, "ring"));
  for (size_t k = 0; k < 3; ++k)
    works.push_back(
        c.receive(view(in[k].data(), DType::f32, count + static_cast<int64_t>(k)), before, "ring"));
  for (Work& work : works) work.wait();
  for (int k = 0; k < 3; ++k)
    EXPECT_EQ(in[static_cast<size_t>(k)], numbers(before * 10 + k, count + k));
}

// Many operations under way while nobody waits.
inline void check_unwaited(Communicator& c) {
  constexpr size_t operations = 20;
  constexpr int64_t count = 5000;
  std::vector<std::vector<float>> x;
  std::vector<Work> works;
  for (size_t k = 0; k < operations; ++k) x.push_back(numbers(c.rank(), count));
  for (auto& values : x)
    works.push_back(c.all_reduce(view(values.data(), DType::f32, count), Reduction::sum, "many"));
  const std::vector<float> sum = expected_sum(c.size(), count);
  for (size_t k = operations; k-- > 0;) {
    works[k].wait();
    EXPECT_EQ(x[k], sum);
  }
}

inline void check_communicator(Communicator& c) {
  for (const int64_t count : {1, 7, 840, 20000, 100003}) check_all_reduce(c, count);
  for (const int64_t part : {1, 64, 33333}) check_scatter_and_gather(c, part);
  for (const int64_t count : {5, 100000}) check_bf16(c, count);
  check_small_things(c);
  for (const int64_t count : {3, 200000}) check_transfers(c, count);
  check_unwaited(c);
}

}  // namespace rankine::test

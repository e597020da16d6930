#include <array>

#include "unit/ops/attention_reference.h"
#include "unit/ops/support.h"

namespace rankine::test {
namespace {

class CachedAttentionTest : public testing::TestWithParam<DType> {};

const AttentionShape all_shapes[] = {{1, 40, 2, 2, 16, 0},
                                     {1, 70, 4, 2, 64, 0},
                                     {1, 33, 6, 2, 80, 7},
                                     {1, 25, 3, 1, 20, 0},
                                     {1, 30, 4, 2, 128, 9}};

// Runs the rows of qkv in steps of growing size, each with what came before in the caches.
void run_in_steps(CpuOps& ops, const AttentionShape& s, const Tensor& qkv, const Tensor& k_cache,
                  const Tensor& v_cache, const Tensor& out) {
  for (int64_t past = 0, step = 1; past < s.tokens; past += step, step = 2 * step + 1) {
    AttentionShape part = s;
    part.tokens = std::min(step, s.tokens - past);
    const std::array cache{KvCache{past, k_cache, v_cache}};
    ops.attention_cached(part, qkv.rows(past, part.tokens), cache, out.rows(past, part.tokens));
  }
}

TEST_P(CachedAttentionTest, equals_attention_over_the_whole_sequence) {
  const DType dtype = GetParam();
  for (const AttentionShape& s : all_shapes)
    for (const InstructionSet& set : instruction_sets()) {
      SCOPED_TRACE(fmt::format("{} {} tokens {} heads {}/{} head size {} window {}", set.name,
                               dtype_name(dtype), s.tokens, s.heads, s.kv_heads, s.head_dim,
                               s.window));
      const int64_t positions = s.tokens + 5;
      const Memory qkv = random_memory(dtype, {s.rows(), s.qkv_width()}, 21, 2.0f);
      const Memory k_cache(dtype, {s.kv_heads, positions, s.head_dim});
      const Memory v_cache(dtype, {s.kv_heads, positions, s.head_dim});
      const Memory out(dtype, {s.rows(), s.heads * s.head_dim});
      Backend backend(2, set);
      backend.reserve(backend.ops().attention_cached_workspace(s, positions));
      run_in_steps(backend.ops(), s, qkv.tensor(), k_cache.tensor(), v_cache.tensor(),
                   out.tensor());
      const ReferenceAttention expected = reference_attention(s, values(qkv.tensor()));
      EXPECT_TRUE(near(values(out.tensor()), expected.out, rounding(dtype) + 1e-6));
      for (int64_t h = 0; h < s.kv_heads; ++h)
        for (int64_t t = 0; t < s.tokens; ++t)
          for (int64_t d = 0; d < s.head_dim; ++d) {
            const auto from = static_cast<int64_t>(expected.column(0, t, s.heads + h)) + d;
            const int64_t to = (h * positions + t) * s.head_dim + d;
            ASSERT_EQ(element(k_cache.tensor(), to), element(qkv.tensor(), from));
            ASSERT_EQ(element(v_cache.tensor(), to),
                      element(qkv.tensor(), from + s.kv_heads * s.head_dim));
          }
      EXPECT_TRUE(backend.workspace_intact() && k_cache.guard_intact() && out.guard_intact());
    }
}

TEST_P(CachedAttentionTest, results_do_not_depend_on_the_number_of_threads) {
  const DType dtype = GetParam();
  const AttentionShape s{1, 50, 4, 2, 64, 0};
  const Memory qkv = random_memory(dtype, {s.rows(), s.qkv_width()}, 22, 2.0f);
  std::vector<Memory> outs;
  for (const int threads : {1, 3}) {
    Backend backend(threads, instruction_sets().front());
    const Memory k_cache(dtype, {s.kv_heads, 50, s.head_dim});
    const Memory v_cache(dtype, {s.kv_heads, 50, s.head_dim});
    backend.reserve(backend.ops().attention_cached_workspace(s, 50));
    const Memory& out = outs.emplace_back(dtype, Shape{s.rows(), s.heads * s.head_dim});
    run_in_steps(backend.ops(), s, qkv.tensor(), k_cache.tensor(), v_cache.tensor(), out.tensor());
    EXPECT_TRUE(same_bytes(out.tensor(), outs.front().tensor()));
  }
}

// Sequences of different lengths get together what each gets alone.
TEST_P(CachedAttentionTest, sequences_do_not_touch_each_other) {
  const DType dtype = GetParam();
  constexpr int64_t positions = 40;
  for (const int64_t tokens : {1, 3})
    for (const InstructionSet& set : instruction_sets()) {
      const AttentionShape all{3, tokens, 6, 2, 64, 0}, one{1, tokens, 6, 2, 64, 0};
      const Memory qkv = random_memory(dtype, {all.rows(), all.qkv_width()}, 24, 2.0f);
      const Memory together(dtype, {all.rows(), all.heads * all.head_dim});
      const Memory alone(dtype, {all.rows(), all.heads * all.head_dim});
      Backend backend(2, set);
      backend.reserve(backend.ops().attention_cached_workspace(all, positions));
      std::vector<Memory> memory;
      std::vector<KvCache> caches;
      const auto fill = [&] {
        caches.clear();
        memory.clear();
        for (const int64_t past : {0, 37, 12}) {
          const Shape shape{one.kv_heads, positions, one.head_dim};
          for (const uint64_t seed : {31, 32})
            memory.push_back(random_memory(dtype, shape, seed + static_cast<uint64_t>(past), 2.0f));
          caches.push_back({past, memory.end()[-2].tensor(), memory.end()[-1].tensor()});
        }
      };
      fill();
      backend.ops().attention_cached(all, qkv.tensor(), caches, together.tensor());
      fill();
      for (int64_t s = 0; s < 3; ++s)
        backend.ops().attention_cached(one, qkv.tensor().rows(s * tokens, tokens),
                                       std::span(caches).subspan(static_cast<size_t>(s), 1),
                                       alone.tensor().rows(s * tokens, tokens));
      EXPECT_TRUE(same_bytes(together.tensor(), alone.tensor())) << set.name << " " << tokens;
      EXPECT_TRUE(backend.workspace_intact() && together.guard_intact());
    }
}

INSTANTIATE_TEST_SUITE_P(types, CachedAttentionTest, testing::ValuesIn(storage_types),
                         [](const auto& tested) { return std::string(dtype_name(tested.param)); });

TEST(CachedAttention, tokens_beyond_the_cache_are_an_internal_error) {
  Backend backend(1, instruction_sets().front());
  const AttentionShape s{1, 4, 1, 1, 8, 0};
  const Memory qkv(DType::f32, {4, 24}), cache(DType::f32, {1, 6, 8}), out(DType::f32, {4, 8});
  backend.reserve(backend.ops().attention_cached_workspace(s, 6));
  const std::array caches{KvCache{3, cache.tensor(), cache.tensor()}};
  EXPECT_THROW(backend.ops().attention_cached(s, qkv.tensor(), caches, out.tensor()), Error);
}

}  // namespace
}  // namespace rankine::test

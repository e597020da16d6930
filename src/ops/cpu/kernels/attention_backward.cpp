#include <omp.h>

#include "ops/cpu/kernels/attention_parts.h"

namespace rankine::RANKINE_ISA {
namespace {

// Scores are kept transposed, keys as rows: then probabilities feed dV and dK without transposing.
constexpr int64_t query_tile = 128;
constexpr int64_t key_tile = 8 * register_rows;
constexpr int64_t key_groups = key_tile / register_rows;
static_assert(query_tile % panel == 0 && register_rows % 2 == 0);

// One task is one key/value head of one sequence; it sums dK and dV over its query heads in order.
template <class S>
class Backward {
  using Path = PathOf<S>;
  using Word = typename Path::Word;

 public:
  // With base null it only measures bytes().
  Backward(const AttentionCall& call, char* base)
      : call_(call),
        padded_(round_up(call.head_dim, lanes)),
        capacity_(round_up(call.tokens, query_tile)),
        scale_(1.0f / __builtin_sqrtf(static_cast<float>(call.head_dim))) {
    Carver carver{.base = base};
    const int64_t row_words = padded_ / Path::depth, panels = round_up(padded_, panel);
    query_columns_ = carver.take<Word>(capacity_ * row_words);
    dout_columns_ = carver.take<Word>(capacity_ * row_words);
    query_depth_ = carver.take<Word>(capacity_ * panels / Path::depth);
    dout_depth_ = carver.take<Word>(capacity_ * panels / Path::depth);
    key_rows_ = carver.take<Word>(key_tile * row_words);
    value_rows_ = carver.take<Word>(key_tile * row_words);
    key_depth_ = carver.take<Word>(key_tile * panels / Path::depth);
    dq_ = carver.take<float>(capacity_ * padded_);
    dk_ = carver.take<float>(capacity_ * padded_);
    dv_ = carver.take<float>(capacity_ * padded_);
    delta_ = carver.take<float>(capacity_);
    lse_ = carver.take<float>(capacity_);
    ends_ = carver.take<int32_t>(capacity_);
    p_ = carver.take<float>(key_tile * query_tile);
    ds_ = carver.take<float>(key_tile * query_tile);
    if (Path::depth == 2) {
      p_pairs_ = carver.take<Bf16>(key_tile * query_tile);
      ds_pairs_ = carver.take<Bf16>(key_tile * query_tile);
      ds_zipped_ = carver.take<uint32_t>(key_tile * query_tile / 2);
    }
    bytes_ = carver.used;
  }
  int64_t bytes() const { return bytes_; }  // of one thread's workspace

  void run(int64_t task) {
    const int64_t group = call_.heads / call_.kv_heads;
    batch_ = task / call_.kv_heads;
    kv_head_ = task % call_.kv_heads;
    find_ends();
    clear(dk_, capacity_ * padded_);
    clear(dv_, capacity_ * padded_);
    for (int64_t head = kv_head_ * group; head < (kv_head_ + 1) * group; ++head) {
      load_head(head);
      for (int64_t k = 0; k < call_.tokens; k += key_tile) {
        load_keys(k);
        const int64_t keys = smaller_of(key_tile, call_.tokens - k);
        const int64_t end = end_of(k + keys - 1);
        for (int64_t q = k / query_tile * query_tile; q < end; q += query_tile) tile(k, keys, q);
      }
      write(head, dq_, scale_);
    }
    write(call_.heads + kv_head_, dk_, scale_);
    write(call_.heads + call_.kv_heads + kv_head_, dv_, 1.0f);
  }

 private:
  int64_t width() const { return (call_.heads + 2 * call_.kv_heads) * call_.head_dim; }

  // Where each token's document ends.
  void find_ends() {
    const int32_t* first_keys =
        call_.first_keys == nullptr ? nullptr : call_.first_keys + batch_ * call_.tokens;
    int64_t end = call_.tokens;
    for (int64_t t = call_.tokens - 1; t >= 0; --t) {
      ends_[t] = static_cast<int32_t>(end);
      if (first_keys != nullptr && first_keys[t] == t) end = t;
    }
  }

  // One past the last query that sees the key.
  int64_t end_of(int64_t key) const {
    return call_.window > 0 ? smaller_of(ends_[key], key + call_.window) : ends_[key];
  }

  static void clear(float* x, int64_t count) {
    __builtin_memset(x, 0, static_cast<size_t>(count) * sizeof(float));
  }

  HeadRows<S> rows_of(const void* matrix, int64_t row_width, int64_t column_head) const {
    return {.data = static_cast<const S*>(matrix) + batch_ * call_.tokens * row_width +
                    column_head * call_.head_dim,
            .stride = row_width,
            .first = 0,
            .end = capacity_,
            .limit = call_.tokens,
            .width = call_.head_dim,
            .padded = padded_};
  }

  void load_head(int64_t head) {
    const HeadRows<S> q = rows_of(call_.qkv, width(), head);
    const HeadRows<S> dout = rows_of(call_.dout, call_.heads * call_.head_dim, head);
    const HeadRows<S> out = rows_of(call_.out, call_.heads * call_.head_dim, head);
    pack_columns<Path>(q, query_columns_);
    pack_columns<Path>(dout, dout_columns_);
    pack_depth<Path>(q, 0, capacity_, query_depth_);
    pack_depth<Path>(dout, 0, capacity_, dout_depth_);
    clear(dq_, capacity_ * padded_);
    const float* lse = call_.lse + (batch_ * call_.heads + head) * call_.tokens;
    for (int64_t t = 0; t < call_.tokens; ++t) {
      const S *a = out.data + t * out.stride, *b = dout.data + t * dout.stride;
      prefetch_row<false>(a + prefetch_distance * out.stride, call_.head_dim);
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t d = 0; d < call_.head_dim; ++d) sum += up(a[d]) * up(b[d]);
      delta_[t] = sum;
      lse_[t] = lse[t];
    }
    for (int64_t t = call_.tokens; t < capacity_; ++t) delta_[t] = lse_[t] = 0;
  }

  void load_keys(int64_t k) {
    HeadRows<S> keys = rows_of(call_.qkv, width(), call_.heads + kv_head_);
    HeadRows<S> values = rows_of(call_.qkv, width(), call_.heads + call_.kv_heads + kv_head_);
    keys.first = values.first = k;
    keys.end = values.end = k + key_tile;
    pack_rows<Path>(keys, key_rows_);
    pack_rows<Path>(values, value_rows_);
    pack_depth<Path>(keys, k, key_tile, key_depth_);
  }

  void tile(int64_t k, int64_t keys, int64_t q) {
    const int64_t queries = smaller_of(query_tile, call_.tokens - q);
    products(k, keys, q, queries);
    derivatives(k, keys, q, queries);
    if constexpr (Path::depth == 2) zip(keys);
    add_to_keys(k, keys, q);
    add_to_queries(k, keys, q, queries);
  }

  // p = k q^T and ds = v dout^T, for the panels and row groups that hold a visible pair.
  void products(int64_t k, int64_t keys, int64_t q, int64_t queries) {
    const int64_t words = padded_ / Path::depth;
    for (int64_t c = 0; c < queries; c += panel) {
      const int64_t from = first_key(call_, batch_, q + c) - k;
      const int64_t to = smaller_of(keys, q + c + panel - k);
      for (int64_t i = larger_of(0, from) / register_rows * register_rows; i < to;
           i += register_rows) {
        const int rows = static_cast<int>(smaller_of(register_rows, keys - i));
        Tile<Word> product{.a = key_rows_ + i * words,
                           .a_row = words,
                           .a_step = 1,
                           .b = query_columns_ + (q + c) * words,
                           .words = static_cast<int>(words),
                           .c = p_ + i * query_tile + c,
                           .c_row = query_tile,
                           .accumulate = false};
        multiply_group<Path>(product, rows, panel);
        product.a = value_rows_ + i * words;
        product.b = dout_columns_ + (q + c) * words;
        product.c = ds_ + i * query_tile + c;
        multiply_group<Path>(product, rows, panel);
      }
    }
  }

  // p = 2^(score - lse), ds = p (ds - delta), exactly 0 where masked. A row group covers one range
  // of queries, wider than what its rows see by a register tile, which add_to_queries reads.
  void derivatives(int64_t k, int64_t keys, int64_t q, int64_t queries) {
    for (int64_t g = 0; g * register_rows < keys; ++g) {
      const int64_t i = g * register_rows, last = smaller_of(i + register_rows, keys) - 1;
      from_[g] = larger_of(0, k + i - register_rows - q) / lanes * lanes;
      to_[g] = round_up(last_query(k + last, q, queries) + register_rows, lanes);
      to_[g] = smaller_of(to_[g], query_tile);
      for (int64_t r = i; r <= last; ++r)
        derive_row(g, r, k + r - q, last_query(k + r, q, queries), q);
    }
  }

  // One past the last query of the tile that sees the key, at least 0.
  int64_t last_query(int64_t key, int64_t q, int64_t queries) const {
    return larger_of(0, smaller_of(queries, end_of(key) - q));
  }

  void derive_row(int64_t g, int64_t r, int64_t low, int64_t high, int64_t q) {
    float *p = p_ + r * query_tile, *ds = ds_ + r * query_tile;
    const int64_t from = from_[g], to = to_[g];
    for (int64_t j = from; j < to; j += lanes) {
      const Floats weight = exp2_floats(load(p + j) * (scale_ * log2_e) - load(lse_ + q + j));
      store(ds + j, weight * (load(ds + j) - load(delta_ + q + j)));
      store(p + j, weight);
    }
    for (int64_t j = from; j < smaller_of(low, to); ++j) p[j] = ds[j] = 0;
    for (int64_t j = larger_of(from, high); j < to; ++j) p[j] = ds[j] = 0;
    if constexpr (Path::depth == 2) {
      for (int64_t j = from; j < to; j += lanes) {
        store(p_pairs_ + r * query_tile + j, load(p + j));
        store(ds_pairs_ + r * query_tile + j, load(ds + j));
      }
    }
  }

  // Pairs along keys, for the product that contracts over them.
  void zip(int64_t keys) {
    for (int64_t i = 0; i < keys; i += 2) {
      const int64_t g = i / register_rows;
      const Bf16 *a = ds_pairs_ + i * query_tile, *b = a + query_tile;
      uint32_t* to = ds_zipped_ + i / 2 * query_tile;
      const uint32_t mask = i + 1 < keys ? 0xffff0000u : 0u;
#pragma omp simd
      for (int64_t j = from_[g]; j < to_[g]; ++j)
        to[j] = a[j].bits | (static_cast<uint32_t>(b[j].bits) << 16 & mask);
    }
  }

  // dv += p dout, dk += ds q
  void add_to_keys(int64_t k, int64_t keys, int64_t q) {
    const int64_t row_words = query_tile / Path::depth;
    for (int64_t d = 0; d < padded_; d += panel) {
      const int64_t column = d / panel * (capacity_ / Path::depth) * panel;
      for (int64_t g = 0; g * register_rows < keys; ++g) {
        if (to_[g] <= from_[g]) continue;
        const int64_t i = g * register_rows;
        const int rows = static_cast<int>(smaller_of(register_rows, keys - i));
        Tile<Word> product{.a = words(p_, p_pairs_) + i * row_words + from_[g] / Path::depth,
                           .a_row = row_words,
                           .a_step = 1,
                           .b = dout_depth_ + column + (q + from_[g]) / Path::depth * panel,
                           .words = static_cast<int>((to_[g] - from_[g]) / Path::depth),
                           .c = dv_ + (k + i) * padded_ + d,
                           .c_row = padded_,
                           .accumulate = true};
        multiply_group<Path>(product, rows, padded_ - d);
        product.a = words(ds_, ds_pairs_) + i * row_words + from_[g] / Path::depth;
        product.b = query_depth_ + column + (q + from_[g]) / Path::depth * panel;
        product.c = dk_ + (k + i) * padded_ + d;
        multiply_group<Path>(product, rows, padded_ - d);
      }
    }
  }

  // dq += ds^T k
  void add_to_queries(int64_t k, int64_t keys, int64_t q, int64_t queries) {
    const Word* ds = transposed_words();
    for (int64_t d = 0; d < padded_; d += panel) {
      const Word* column = key_depth_ + d / panel * (key_tile / Path::depth) * panel;
      for (int64_t j = 0; j < queries; j += register_rows) {
        const int64_t rows = smaller_of(register_rows, queries - j);
        const int64_t low = first_key(call_, batch_, q + j) - k;
        const int64_t from = larger_of(0, low) / Path::depth;
        const int64_t to = round_up(smaller_of(keys, q + j + rows - k), Path::depth) / Path::depth;
        if (to <= from) continue;
        multiply_group<Path>({.a = ds + from * query_tile + j,
                              .a_row = 1,
                              .a_step = query_tile,
                              .b = column + from * panel,
                              .words = static_cast<int>(to - from),
                              .c = dq_ + (q + j) * padded_ + d,
                              .c_row = padded_,
                              .accumulate = true},
                             static_cast<int>(rows), padded_ - d);
      }
    }
  }

  static const Word* words(const float* plain, const Bf16* pairs) {
    if constexpr (Path::depth == 2)
      return reinterpret_cast<const Word*>(pairs);
    else
      return plain;
  }
  const Word* transposed_words() const {
    if constexpr (Path::depth == 2)
      return ds_zipped_;
    else
      return ds_;
  }

  void write(int64_t column_head, const float* gradient, float factor) {
    S* to = static_cast<S*>(call_.dqkv) + batch_ * call_.tokens * width() +
            column_head * call_.head_dim;
    for (int64_t t = 0; t < call_.tokens; ++t, to += width(), gradient += padded_) {
      prefetch_row<true>(to + prefetch_distance * width(), call_.head_dim);
#pragma omp simd
      for (int64_t d = 0; d < call_.head_dim; ++d) down(to[d], gradient[d] * factor);
    }
  }

  const AttentionCall& call_;
  int64_t padded_, capacity_, bytes_, batch_ = 0, kv_head_ = 0;
  float scale_;
  Word *query_columns_, *dout_columns_, *query_depth_, *dout_depth_;
  Word *key_rows_, *value_rows_, *key_depth_;
  float *dq_, *dk_, *dv_, *delta_, *lse_, *p_, *ds_;
  Bf16 *p_pairs_ = nullptr, *ds_pairs_ = nullptr;
  uint32_t* ds_zipped_ = nullptr;
  int32_t* ends_;
  int64_t from_[key_groups], to_[key_groups];
};

}  // namespace

template <class S>
size_t backward_workspace(const AttentionCall& call) {
  return static_cast<size_t>(Backward<S>(call, nullptr).bytes() * call.threads);
}

template <class S>
void attention_backward(const AttentionCall& call) {
  const size_t bytes = backward_workspace<S>(call) / static_cast<size_t>(call.threads);
#pragma omp parallel num_threads(call.threads)
  {
    const auto thread = static_cast<size_t>(omp_get_thread_num());
    Backward<S> backward(call, static_cast<char*>(call.workspace) + thread * bytes);
#pragma omp for schedule(dynamic, 1)
    for (int64_t task = 0; task < call.batch * call.kv_heads; ++task) backward.run(task);
  }
}

template size_t backward_workspace<float>(const AttentionCall& call);
template size_t backward_workspace<Bf16>(const AttentionCall& call);
template size_t backward_workspace<F16>(const AttentionCall& call);
template void attention_backward<float>(const AttentionCall& call);
template void attention_backward<Bf16>(const AttentionCall& call);
template void attention_backward<F16>(const AttentionCall& call);

}  // namespace rankine::RANKINE_ISA

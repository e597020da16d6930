#include <omp.h>

#include "ops/cpu/kernels/attention_parts.h"

namespace rankine::RANKINE_ISA {
namespace {

constexpr int64_t query_tile = 8 * register_rows;
constexpr int64_t key_tile = 128;
static_assert(key_tile % panel == 0);

// A task is one key/value head of one sequence and a range of query blocks; tasks are independent
// and tile borders fixed, so that results do not depend on how queries are divided.
struct Division {
  int64_t blocks, parts, tasks;
};

Division divide(const AttentionCall& call) {
  const int64_t pairs = call.batch * call.kv_heads;
  const int64_t blocks = (call.tokens + query_tile - 1) / query_tile;
  const int64_t wanted = (4 * call.threads + pairs - 1) / pairs;
  const int64_t parts = smaller_of(wanted, blocks);
  return {blocks, parts, pairs * parts};
}

// Query block at which part `part` begins: the causal triangle in pieces of equal area.
int64_t part_begin(const Division& division, int64_t part) {
  const double share = static_cast<double>(part) / static_cast<double>(division.parts);
  return static_cast<int64_t>(__builtin_sqrt(share) * static_cast<double>(division.blocks) + 0.5);
}

template <class S>
class Forward {
  using Path = PathOf<S>;
  using Word = typename Path::Word;

 public:
  // With base null it only measures bytes().
  Forward(const AttentionCall& call, char* base)
      : call_(call),
        padded_(round_up(call.head_dim, lanes)),
        capacity_(round_up(call.tokens, key_tile)),
        scale_(log2_e / __builtin_sqrtf(static_cast<float>(call.head_dim))) {
    Carver carver{.base = base};
    const int64_t panels = round_up(padded_, panel);
    keys_ = carver.take<Word>(capacity_ * padded_ / Path::depth);
    values_ = carver.take<Word>(capacity_ * panels / Path::depth);
    queries_ = carver.take<Word>(query_tile * padded_ / Path::depth);
    scores_ = carver.take<float>(query_tile * key_tile);
    if (Path::depth == 2) pairs_ = carver.take<Bf16>(query_tile * key_tile);
    sums_ = carver.take<float>(query_tile * padded_);
    maximum_ = carver.take<float>(query_tile);
    denominator_ = carver.take<float>(query_tile);
    bytes_ = carver.used;
  }
  int64_t bytes() const { return bytes_; }  // of one thread's workspace

  void run(int64_t task, const Division& division) {
    const int64_t part = division.parts - 1 - task % division.parts, pair = task / division.parts;
    const int64_t kv_head = pair % call_.kv_heads, group = call_.heads / call_.kv_heads;
    batch_ = pair / call_.kv_heads;
    const int64_t begin = part_begin(division, part) * query_tile;
    const int64_t end = smaller_of(part_begin(division, part + 1) * query_tile, call_.tokens);
    if (begin >= end) return;
    const int64_t first = first_key(call_, batch_, begin) / key_tile * key_tile;
    pack_columns<Path>(head_rows(call_.heads + kv_head, first, round_up(end, key_tile)), keys_);
    pack_depth<Path>(
        head_rows(call_.heads + call_.kv_heads + kv_head, first, round_up(end, key_tile)), 0,
        capacity_, values_);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head)
      for (int64_t q = begin; q < end; q += query_tile)
        block(head, q, smaller_of(query_tile, end - q));
  }

 private:
  HeadRows<S> head_rows(int64_t column_head, int64_t first, int64_t end) const {
    const int64_t width = (call_.heads + 2 * call_.kv_heads) * call_.head_dim;
    const S* qkv = static_cast<const S*>(call_.qkv);
    return {.data = qkv + batch_ * call_.tokens * width + column_head * call_.head_dim,
            .stride = width,
            .first = first,
            .end = end,
            .limit = call_.tokens,
            .width = call_.head_dim,
            .padded = padded_};
  }

  void block(int64_t head, int64_t first, int64_t count) {
    pack_rows<Path>(head_rows(head, first, first + count), queries_);
    for (int64_t i = 0; i < count; ++i) maximum_[i] = first_maximum, denominator_[i] = 0;
    __builtin_memset(sums_, 0, static_cast<size_t>(count * padded_) * sizeof(float));
    const int64_t end = first + count;
    for (int64_t k = first_key(call_, batch_, first) / key_tile * key_tile; k < end;
         k += key_tile) {
      scores(first, count, k, smaller_of(key_tile, end - k));
      probabilities(first, count, k, smaller_of(key_tile, end - k));
      weigh(count, k);
    }
    write(head, first, count);
  }

  // scores = q k^T for the panels and row groups that hold a visible pair.
  void scores(int64_t first, int64_t count, int64_t k, int64_t keys) {
    const int64_t words = padded_ / Path::depth;
    for (int64_t c = 0; c < keys; c += panel) {
      const int64_t from = larger_of(0, k + c - first) / register_rows * register_rows;
      const int64_t to =
          call_.window > 0 ? smaller_of(count, k + c + panel - 1 + call_.window - first) : count;
      for (int64_t i = from; i < to; i += register_rows)
        multiply_group<Path>({.a = queries_ + i * words,
                              .a_row = words,
                              .a_step = 1,
                              .b = keys_ + (k + c) * words,
                              .words = static_cast<int>(words),
                              .c = scores_ + i * key_tile + c,
                              .c_row = key_tile,
                              .accumulate = false},
                             static_cast<int>(smaller_of(register_rows, count - i)), panel);
    }
  }

  // Turns scores into 2^(score - maximum), exactly 0 where masked, over one range of whole vectors
  // per row group; rescales what was summed under a smaller maximum.
  void probabilities(int64_t first, int64_t count, int64_t k, int64_t keys) {
    for (int64_t g = 0; g * register_rows < count; ++g) {
      const int64_t i = g * register_rows, last = smaller_of(i + register_rows, count) - 1;
      from_[g] = larger_of(0, first_key(call_, batch_, first + i) - k) / lanes * lanes;
      to_[g] = round_up(larger_of(0, smaller_of(keys, first + last + 1 - k)), lanes);
      if (to_[g] <= from_[g]) continue;
      for (int64_t r = i; r <= last; ++r) {
        float* row = scores_ + r * key_tile;
        const int64_t low = smaller_of(to_[g], first_key(call_, batch_, first + r) - k);
        const int64_t high = larger_of(from_[g], first + r + 1 - k);
        for (int64_t j = from_[g]; j < low; ++j) row[j] = masked_score;
        for (int64_t j = high; j < to_[g]; ++j) row[j] = masked_score;
        softmax_row(r, row, from_[g], to_[g]);
      }
    }
  }

  void softmax_row(int64_t r, float* row, int64_t from, int64_t to) {
    Floats best = load(row + from);
    for (int64_t j = from + lanes; j < to; j += lanes) best = larger(best, load(row + j));
    const float highest = largest(best) * scale_;
    const float maximum = highest > maximum_[r] ? highest : maximum_[r];
    Floats sum{};
    for (int64_t j = from; j < to; j += lanes) {
      const Floats p = exp2_floats(load(row + j) * scale_ - maximum);
      sum += p;
      if constexpr (Path::depth == 2)
        store(pairs_ + r * key_tile + j, p);
      else
        store(row + j, p);
    }
    if (maximum > maximum_[r]) {
      const float shrink = exp2_fast(maximum_[r] - maximum);
      denominator_[r] *= shrink;
      float* o = sums_ + r * padded_;
      for (int64_t d = 0; d < padded_; d += lanes) store(o + d, load(o + d) * shrink);
      maximum_[r] = maximum;
    }
    denominator_[r] += total(sum);
  }

  // sums += probabilities v
  void weigh(int64_t count, int64_t k) {
    const Word* p = probability_words();
    const int64_t row_words = key_tile / Path::depth;
    for (int64_t d = 0; d < padded_; d += panel) {
      const Word* v = values_ + d / panel * (capacity_ / Path::depth) * panel;
      for (int64_t g = 0; g * register_rows < count; ++g) {
        if (to_[g] <= from_[g]) continue;
        const int64_t i = g * register_rows;
        multiply_group<Path>({.a = p + i * row_words + from_[g] / Path::depth,
                              .a_row = row_words,
                              .a_step = 1,
                              .b = v + (k + from_[g]) / Path::depth * panel,
                              .words = static_cast<int>((to_[g] - from_[g]) / Path::depth),
                              .c = sums_ + i * padded_ + d,
                              .c_row = padded_,
                              .accumulate = true},
                             static_cast<int>(smaller_of(register_rows, count - i)), padded_ - d);
      }
    }
  }

  const Word* probability_words() const {
    if constexpr (Path::depth == 2)
      return reinterpret_cast<const Word*>(pairs_);
    else
      return scores_;
  }

  void write(int64_t head, int64_t first, int64_t count) {
    float* lse = call_.lse + (batch_ * call_.heads + head) * call_.tokens;
    for (int64_t i = 0; i < count; ++i) {
      const float inverse = 1.0f / denominator_[i];
      const float* sums = sums_ + i * padded_;
      S* out = static_cast<S*>(call_.out) +
               ((batch_ * call_.tokens + first + i) * call_.heads + head) * call_.head_dim;
#pragma omp simd
      for (int64_t d = 0; d < call_.head_dim; ++d) down(out[d], sums[d] * inverse);
      lse[first + i] = maximum_[i] + __builtin_log2f(denominator_[i]);
    }
  }

  const AttentionCall& call_;
  int64_t padded_, capacity_, batch_ = 0;
  float scale_;
  Word *keys_, *values_, *queries_;
  float *scores_, *sums_, *maximum_, *denominator_;
  Bf16* pairs_ = nullptr;
  int64_t bytes_;
  int64_t from_[query_tile / register_rows], to_[query_tile / register_rows];
};

}  // namespace

template <class S>
size_t forward_workspace(const AttentionCall& call) {
  return static_cast<size_t>(Forward<S>(call, nullptr).bytes() * call.threads);
}

template <class S>
void attention_forward(const AttentionCall& call) {
  const Division division = divide(call);
  const size_t bytes = forward_workspace<S>(call) / static_cast<size_t>(call.threads);
#pragma omp parallel num_threads(call.threads)
  {
    const auto thread = static_cast<size_t>(omp_get_thread_num());
    Forward<S> forward(call, static_cast<char*>(call.workspace) + thread * bytes);
#pragma omp for schedule(dynamic, 1)
    for (int64_t task = 0; task < division.tasks; ++task) forward.run(task, division);
  }
}

template size_t forward_workspace<float>(const AttentionCall& call);
template size_t forward_workspace<Bf16>(const AttentionCall& call);
template size_t forward_workspace<F16>(const AttentionCall& call);
template void attention_forward<float>(const AttentionCall& call);
template void attention_forward<Bf16>(const AttentionCall& call);
template void attention_forward<F16>(const AttentionCall& call);

}  // namespace rankine::RANKINE_ISA

#include "ops/cpu/kernels/blocks.h"
#include "ops/cpu/kernels/on_team.h"
#include "ops/cpu/kernels/parts.h"
#include "ops/cpu/kernels/vectors.h"

// One token from a row of logits: temperature, then top-k, then top-p. Nothing is sorted: the last
// token that is kept is found by bisection, among those that simple bounds leave.
namespace rankine::RANKINE_ISA {
namespace {

constexpr float lowest = -3.4028235e38f, infinity = __builtin_inff();
constexpr float log2_e = 1.44269504f;
constexpr int64_t padding = 16, sum_block = 1024, chunk = 64;

int64_t padded(int64_t count) {
  return blocks_of(count, padding) * padding;
}

// The tokens that may still be chosen, in order of their ids. Behind them, up to a multiple of
// `padding`, are logits of -infinity with the weight 0.
struct Tokens {
  float *logits, *weights;  // weight = e^((logit - highest) / temperature), 0 below 2^-64
  int32_t* ids;
  int64_t count;

  void pad() {
    for (int64_t i = count; i < padded(count); ++i) {
      logits[i] = -infinity;
      weights[i] = 0;
    }
  }
};

float largest_of(const float* x, int64_t count) {
  float most = -infinity;
#pragma omp simd reduction(max : most)
  for (int64_t i = 0; i < count; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

// The least that is finite.
float smallest_of(const float* x, int64_t count) {
  float least = infinity;
#pragma omp simd reduction(min : least)
  for (int64_t i = 0; i < count; ++i) {
    const float v = x[i] >= lowest ? x[i] : infinity;
    least = v < least ? v : least;
  }
  return least;
}

// How many of the values hold.
template <class Holds>
int64_t count_of(int64_t count, const Holds& holds) {
  int32_t found = 0;
#pragma omp simd reduction(+ : found)
  for (int64_t i = 0; i < count; ++i) found += holds(i) ? 1 : 0;
  return found;
}

// Without NaNs and positive infinities.
bool usable(const float* x, int64_t count) {
  return count_of(count, [x](int64_t i) { return !(x[i] < infinity); }) == 0;
}

// Of `count` weights, a multiple of `padding`: short f32 sums joined in f64.
double sum_of(const float* weights, int64_t count) {
  double sum = 0;
  for (int64_t first = 0; first < count; first += sum_block) {
    const int64_t end = smaller(first + sum_block, count);
    Floats part{};
    for (int64_t i = first; i < end; i += lanes) part += load(weights + i);
    sum += static_cast<double>(total(part));
  }
  return sum;
}

// What lies above a logit: how much, the least of it, and the most of what does not.
struct Above {
  double amount;
  float least, rest;
};

// Tokens amount to their weights, or to 1 each.
template <bool by_weight>
Above above(const Tokens& tokens, float logit) {
  const Floats ones = Floats{} + 1.0f, none = Floats{} + infinity;
  Floats least = none, rest = -none;
  double amount = 0;
  const int64_t count = padded(tokens.count);
  for (int64_t first = 0; first < count; first += sum_block) {
    const int64_t end = smaller(first + sum_block, count);
    Floats part{};
    for (int64_t i = first; i < end; i += lanes) {
      const Floats x = load(tokens.logits + i);
      const Floats one = by_weight ? load(tokens.weights + i) : ones;
      part += x > logit ? one : Floats{};
      const Floats after = x > logit ? x : none, before = x > logit ? -none : x;
      least = after < least ? after : least;
      rest = larger(rest, before);
    }
    amount += static_cast<double>(total(part));
  }
  return {amount, -largest(-least), largest(rest)};
}

// Where to stop when tokens are taken from the likeliest on until they amount to enough: those
// above `logit` are taken, and the first `ties` of those that have it.
struct Cut {
  float logit;
  int64_t ties;
};

template <bool by_weight>
Cut find_cut(const Tokens& tokens, double enough) {
  const float* x = tokens.logits;
  // Both are logits of tokens: those from `low` on are enough, those above `high` are not.
  float low = smallest_of(x, tokens.count), high = largest_of(x, tokens.count);
  double amount = 0;
  while (low < high) {
    float middle = low * 0.5f + high * 0.5f;
    if (!(low <= middle && middle < high)) middle = low;
    const Above more = above<by_weight>(tokens, middle);
    if (more.amount >= enough) {
      low = more.least;
    } else {
      high = more.rest;
      amount = more.amount;
    }
  }
  int64_t first = 0;
  while (x[first] != high) ++first;
  const double ties = __builtin_ceil((enough - amount) /
                                     (by_weight ? static_cast<double>(tokens.weights[first]) : 1));
  const auto most = static_cast<double>(tokens.count);
  return {high, ties < 1 ? 1 : static_cast<int64_t>(ties < most ? ties : most)};
}

// Takes their weight from the tokens that lie beyond the cut.
void leave(Tokens& tokens, const Cut& cut) {
  const float* x = tokens.logits;
  float* w = tokens.weights;
  int64_t ties = cut.ties;
  for (int64_t first = 0; first < tokens.count; first += chunk) {
    const int64_t end = smaller(first + chunk, tokens.count);
    int32_t equal = 0;
#pragma omp simd reduction(+ : equal)
    for (int64_t i = first; i < end; ++i) {
      w[i] = x[i] < cut.logit ? 0.0f : w[i];
      equal += x[i] == cut.logit ? 1 : 0;
    }
    for (int64_t i = first; equal > ties && i < end; ++i)
      if (x[i] == cut.logit && ties-- <= 0) w[i] = 0;
    ties = equal > ties ? ties : ties - equal;
  }
}

// Removes the tokens whose value, their logit or weight, is below the bound.
void drop(Tokens& tokens, const float* values, float bound) {
  int64_t kept = 0;
  for (int64_t first = 0; first < tokens.count; first += chunk) {
    const int64_t end = smaller(first + chunk, tokens.count);
    if (largest_of(values + first, end - first) < bound) continue;
    for (int64_t i = first; i < end; ++i) {
      if (values[i] < bound) continue;
      tokens.logits[kept] = tokens.logits[i];
      tokens.weights[kept] = tokens.weights[i];
      tokens.ids[kept++] = tokens.ids[i];
    }
  }
  tokens.count = kept;
  tokens.pad();
}

// `space` holds the largest logit of each chunk.
void keep_likeliest(Tokens& tokens, int64_t top_k, float* space) {
  if (top_k == 0 || top_k >= tokens.count) return;
  const int64_t chunks = blocks_of(tokens.count, chunk);
  if (top_k <= chunks / 4) {
    for (int64_t c = 0; c < chunks; ++c)
      space[c] = largest_of(tokens.logits + c * chunk, smaller(chunk, tokens.count - c * chunk));
    for (int64_t c = chunks; c < padded(chunks); ++c) space[c] = -infinity;
    // So many chunks have a token of at least this logit.
    const Cut bound =
        find_cut<false>({space, nullptr, nullptr, chunks}, static_cast<double>(top_k));
    drop(tokens, tokens.logits, bound.logit);
  }
  leave(tokens, find_cut<false>(tokens, static_cast<double>(top_k)));
}

void keep_probable(Tokens& tokens, double top_p) {
  if (top_p >= 1) return;
  const double sum = sum_of(tokens.weights, padded(tokens.count));
  // All tokens of less than this weight together have less than what is left out.
  const auto bound =
      static_cast<float>(0.999 * (1 - top_p) * sum / static_cast<double>(tokens.count));
  const float* w = tokens.weights;
  if (count_of(tokens.count, [=](int64_t i) { return w[i] >= bound; }) < tokens.count / 16)
    drop(tokens, w, bound);
  leave(tokens, find_cut<true>(tokens, top_p * sum));
}

int32_t draw(const Tokens& tokens, double at) {
  const float* w = tokens.weights;
  const int64_t count = padded(tokens.count);
  double left = at * sum_of(w, count);
  for (int64_t first = 0; first < count; first += sum_block) {
    const int64_t end = smaller(first + sum_block, count);
    const double sum = sum_of(w + first, end - first);
    if (left < sum) {
      for (int64_t i = first; i < end; ++i) {
        left -= static_cast<double>(w[i]);
        if (left < 0) return tokens.ids[i];
      }
    } else {
      left -= sum;
    }
  }
  int64_t last = tokens.count - 1;  // rounding
  while (w[last] == 0) --last;
  return tokens.ids[last];
}

template <class S>
int32_t choose_one(const ChooseCall& call, const S* from, Tokens tokens, float* space, double at) {
  float *x = tokens.logits, *w = tokens.weights;
#pragma omp simd
  for (int64_t i = 0; i < tokens.count; ++i) x[i] = up(from[i]);
  for (int64_t i = 0; i < call.forbidden_count; ++i) x[call.forbidden[i]] = -infinity;
  const float highest = largest_of(x, tokens.count);
  if (!(highest >= lowest) || !usable(x, tokens.count)) return -1;
  if (call.temperature == 0) {
    int32_t id = 0;
    while (x[id] != highest) ++id;
    return id;
  }
  const double wanted = static_cast<double>(log2_e) / call.temperature;
  const float scale = wanted < 1e30 ? static_cast<float>(wanted) : 1e30f;
#pragma omp simd
  for (int64_t i = 0; i < tokens.count; ++i) {
    const float power = (x[i] - highest) * scale;
    w[i] = power > -64.0f ? exp2_fast(power) : 0.0f;
    tokens.ids[i] = static_cast<int32_t>(i);
  }
  tokens.pad();
  keep_likeliest(tokens, call.top_k, space);
  keep_probable(tokens, call.top_p);
  return draw(tokens, at);
}

// Of each thread: logits, weights, ids and the largest logits of chunks.
int64_t scratch_floats(const ChooseCall& call) {
  return 3 * padded(call.vocabulary) + padded(blocks_of(call.vocabulary, chunk));
}

size_t workspace(const ChooseCall& call) {
  return static_cast<size_t>(smaller(call.rows, call.threads) * scratch_floats(call)) *
         sizeof(float);
}

template <class S>
void choose(const ChooseCall& call) {
  const int64_t each = padded(call.vocabulary);
  const auto choose_row = [&](int64_t r, int64_t slot) {
    float* space = static_cast<float*>(call.workspace) + slot * scratch_floats(call);
    const Tokens tokens{space, space + each, reinterpret_cast<int32_t*>(space + 2 * each),
                        call.vocabulary};
    call.tokens[r] = choose_one(call, static_cast<const S*>(call.logits) + r * call.row_stride,
                                tokens, space + 3 * each, call.at[r]);
  };
  on_team(call.team, true, [&](TeamPart part) {
    // With fewer rows than threads, none has more than one.
    for (int64_t r = at_share(call.rows, part.from); r < at_share(call.rows, part.to); ++r)
      choose_row(r, call.rows < call.team.threads ? r : part.thread);
  });
}

}  // namespace

ChooseKernels choose_kernels() {
  return {.choose = {choose<float>, choose<Bf16>, choose<F16>}, .workspace = workspace};
}

}  // namespace rankine::RANKINE_ISA

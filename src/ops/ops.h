#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/exact_sum.h"
#include "base/random.h"
#include "ops/step_state.h"
#include "tensor/device.h"

// The whole list of mathematics on local tensors. Everything that reads or writes tensor contents
// goes through here; a backend is one folder that implements this class.
//
// Shape letters: R rows (= batch x tokens), I inputs, O outputs, C hidden size, F feed-forward
// size, V vocabulary, Vp padded vocabulary, H heads, K key/value heads, D head size, T tokens of
// one sequence, P positions. S is the compute dtype (f32, bf16 or f16), the same for all
// activations and weights of one call; gradients of weights, statistics and optimizer states are
// f32.
//
// Operations run in call order. `accumulate` adds to a gradient, otherwise it is overwritten.
// Sums run in an order that does not depend on the number of threads, except inside matrix
// products.
namespace rankine {

enum class NormKind : uint8_t { layer, rms };
// gelu_exact uses erf, gelu_tanh the tanh form; swiglu is silu(gate) * up with pre = [gate | up].
enum class ActivationKind : uint8_t { gelu_exact, gelu_tanh, swiglu };

struct AttentionShape {
  int64_t batch = 1, tokens = 1, heads = 1, kv_heads = 1, head_dim = 64;
  int64_t window = 0;  // 0: all earlier keys; w: key j is seen by query i iff i - w < j <= i
  // i32 [B, T]: the first token of each token's document, before which it sees no key; empty: a
  // sequence is one document.
  Tensor first_keys = {};
  int64_t rows() const { return batch * tokens; }
  int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
};

// What a layer keeps of one sequence's earlier tokens.
struct KvCache {
  int64_t past = 0;     // tokens it holds
  Tensor keys, values;  // [K, P, D] of the compute dtype
};

struct RopeShape {
  int64_t tokens = 1;  // row r has position first_position + r % tokens
  int64_t first_position = 0;
  int64_t rotated_heads = 1;  // the first H + K heads of a qkv row
  int64_t head_dim = 64;
};

struct CrossEntropy {
  int64_t vocabulary = 0;  // V; columns V..Vp never enter the softmax and get gradient 0
  float gradient_scale = 0;
  bool gradient = true;  // replace the logits by their gradient
  Tensor state = {};     // u8 [sizeof StepState]: its loss scale, a power of two, multiplies it too
};

// One rank's columns of logits whose vocabulary is split over ranks.
struct VocabularyPart {
  int64_t first = 0;    // vocabulary index of column 0
  int64_t columns = 0;  // that hold a vocabulary entry; those behind are padding
};

struct Dropout {
  float probability = 0;
  RandomKey key;             // from (seed, place)
  uint64_t stream = 0;       // step and micro-batch
  uint64_t first_index = 0;  // global index of element 0, a multiple of 4
};

struct AdamWStep {
  float lr = 0, beta1 = 0.9f, beta2 = 0.95f, epsilon = 1e-8f, weight_decay = 0;
  float bias_correction1 = 1, bias_correction2 = 1;  // 1 - beta^t
  float gradient_scale = 1;                          // unscaling and clipping
  // u8 [sizeof StepState], or empty: bias corrections and gradient scale are its, and nothing
  // changes where it says that the step is skipped.
  Tensor state = {};
};

// How a token is chosen from logits: temperature, then top-k, then top-p.
struct TokenChoice {
  int64_t vocabulary = 0;  // V; columns V..Vp are never chosen
  double temperature = 1;  // divides the logits; 0: the likeliest token, the first of several
  int64_t top_k = 0;       // among the k likeliest, of equal ones the first; 0: all
  double top_p = 1;  // among the fewest likeliest that together have this probability, in (0, 1]
  std::span<const int32_t> forbidden = {};  // never chosen
};

class Ops {
 public:
  virtual ~Ops() = default;

  // "cpu, avx512_bf16, 2 threads".
  virtual std::string description() const = 0;
  virtual int threads() const = 0;  // host threads it computes with
  // False when products in this dtype are done by converting to f32.
  virtual bool native(DType dtype) const = 0;
  // Scratch memory that later calls may use; at least the largest *_workspace() of those calls.
  virtual void set_workspace(Tensor bytes) = 0;
  // Waits until all work is done.
  virtual void synchronize() = 0;
  // Whose memory the tensors lie in, and the order of its operations.
  virtual Device& device() = 0;
  virtual Queue& queue() = 0;
  // The operations on memory of the host tier: these themselves on a processor.
  virtual Ops& host() { return *this; }

  // ---- moving and filling
  // `host` may be written again when it returns.
  virtual void upload(const void* host, Tensor to) = 0;
  virtual void download(const Tensor& from, void* host) = 0;  // waits for what `from` comes from
  // The same without waiting: it is in `host` once a mark put behind it has passed.
  virtual void read_later(const Tensor& from, void* host) = 0;
  virtual void cast(const Tensor& from, Tensor to) = 0;  // same count; between f32, bf16, f16
  virtual void fill(Tensor x, float value) = 0;          // f32, bf16, f16, f64
  // x[i] = mean-free normal with deviation `std`, a function of (key, first_index + i). x is f32.
  virtual void fill_normal(Tensor x, RandomKey key, uint64_t first_index, float std) = 0;

  // ---- linear layers; weights are [O, I] as in PyTorch
  // y[R,O] = x[R,I] w^T (+ bias[O], may be empty)
  virtual void linear(const Tensor& x, const Tensor& w, const Tensor& bias, Tensor y) = 0;
  // The same for the few rows of decoding, at the speed at which the weights can be read. A row's
  // values depend neither on the other rows nor on the number of threads. Needs no workspace.
  virtual void linear_few(const Tensor& x, const Tensor& w, const Tensor& bias, Tensor y) = 0;
  // dx[R,I] = dy[R,O] w
  virtual void linear_input_grad(const Tensor& dy, const Tensor& w, Tensor dx) = 0;
  // dw[O,I] (f32) = dy^T x
  virtual void linear_weight_grad(const Tensor& dy, const Tensor& x, Tensor dw,
                                  bool accumulate) = 0;
  // db[O] (f32) = column sums of dy
  virtual void bias_grad(const Tensor& dy, Tensor db, bool accumulate) = 0;
  virtual size_t linear_workspace(int64_t rows, int64_t inputs, int64_t outputs,
                                  DType dtype) const = 0;

  // ---- norms over the last dim; stats are f32 [R,2] (mean, 1/deviation) or [R,1] (1/rms)
  // sum = x + residual (when `residual` is not empty), y = norm(sum) * weight (+ bias). `stats`
  // may be empty. `sum` may be empty when `residual` is.
  struct NormInputs {
    NormKind kind;
    float epsilon;
    Tensor x, residual, weight, bias;
  };
  virtual void norm(const NormInputs& in, Tensor sum, Tensor y, Tensor stats) = 0;
  // y again from x = the stored sum and the stored stats.
  virtual void norm_again(NormKind kind, const Tensor& x, const Tensor& stats, const Tensor& weight,
                          const Tensor& bias, Tensor y) = 0;
  // dx = gradient of the norm's input (+ residual, the gradient that bypasses the norm; may be
  // empty and may be dx itself). dweight and dbias (empty for rms) are f32.
  struct NormGrad {
    NormKind kind;
    Tensor x, stats, weight, dy, residual;
    bool accumulate = false;
  };
  virtual void norm_grad(const NormGrad& in, Tensor dx, Tensor dweight, Tensor dbias) = 0;
  virtual size_t norm_workspace(int64_t rows, int64_t width) const = 0;
  // Per-head RMS norm of q and k (Qwen3): out = qkv with each q head scaled by q_weight[D] / rms
  // and each k head by k_weight[D] / rms; v is copied. rstd: f32 [R, H+K].
  virtual void head_norm(const AttentionShape& shape, float epsilon, const Tensor& qkv,
                         const Tensor& q_weight, const Tensor& k_weight, Tensor out,
                         Tensor rstd) = 0;
  // dqkv in place: from the gradient of `out` to the gradient of `qkv`.
  virtual void head_norm_grad(const AttentionShape& shape, const Tensor& qkv, const Tensor& rstd,
                              const Tensor& q_weight, const Tensor& k_weight, Tensor dqkv,
                              Tensor dq_weight, Tensor dk_weight, bool accumulate) = 0;

  // ---- pointwise
  // y[R,F] = act(pre), pre is [R,F], or [R,2F] = [gate | up] for swiglu
  virtual void activation(ActivationKind kind, const Tensor& pre, Tensor y) = 0;
  // dpre from dy; dy is overwritten by act(pre), which the weight gradient needs.
  virtual void activation_grad(ActivationKind kind, const Tensor& pre, Tensor dy_to_y,
                               Tensor dpre) = 0;
  virtual void add(const Tensor& a, const Tensor& b, Tensor y) = 0;  // y may be a or b
  // x *= mask / (1 - p) in place, the mask a function of (key, stream, index): the same call
  // applied to a gradient is its backward.
  virtual void dropout(Tensor x, const Dropout& dropout) = 0;
  // Half-split rotary embedding in place on the q and k heads of qkv [R, (H+2K)D]; table f32 [P, D]
  // = [cos(D/2) | sin(D/2)]. `inverse` rotates back (the backward).
  virtual void rope(const RopeShape& shape, const Tensor& table, Tensor qkv, bool inverse) = 0;

  // ---- attention, causal, scaled by 1/sqrt(D); never holds T x T
  // out [R, H*D], lse f32 [B, H, T] (log2 of the softmax denominator, for the backward)
  virtual void attention(const AttentionShape& shape, const Tensor& qkv, Tensor out,
                         Tensor lse) = 0;
  virtual void attention_grad(const AttentionShape& shape, const Tensor& qkv, const Tensor& out,
                              const Tensor& dout, const Tensor& lse, Tensor dqkv) = 0;
  virtual size_t attention_workspace(const AttentionShape& shape, DType dtype) const = 0;
  // B sequences, each with a cache of its earlier tokens: stores k and v of the shape.tokens new
  // rows of qkv there, attends each new row over all keys up to itself.
  virtual void attention_cached(const AttentionShape& shape, const Tensor& qkv,
                                std::span<const KvCache> caches, Tensor out) = 0;
  virtual size_t attention_cached_workspace(const AttentionShape& shape,
                                            int64_t positions) const = 0;

  // ---- tokens
  // y[r] = token_table[ids[r]] (+ position_table[first_position + r % tokens], may be empty)
  struct Embedding {
    Tensor ids;  // i32 [R]
    int64_t tokens = 1, first_position = 0;
    // Row 0 of the table is this token; ids of the `vocabulary` that lie outside the table add
    // nothing. 0: the table holds all there are.
    int64_t first_token = 0, vocabulary = 0;
  };
  virtual void embed(const Embedding& e, const Tensor& token_table, const Tensor& position_table,
                     Tensor y) = 0;
  // Adds dy's rows to f32 table gradients; without accumulate they are cleared first.
  virtual void embed_grad(const Embedding& e, const Tensor& dy, Tensor dtoken_table,
                          bool accumulate_tokens, Tensor dposition_table,
                          bool accumulate_positions) = 0;
  // losses f32 [R] = -log softmax(logits[R, Vp])[target], 0 where target < 0 (ignored); the
  // gradient of gradient_scale * sum(losses) replaces the logits when asked for.
  virtual void cross_entropy(const CrossEntropy& ce, Tensor logits, const Tensor& targets,
                             Tensor losses) = 0;

  // The same over ranks that hold a part of the vocabulary each, in two calls. First, f64 [R,3] of
  // this part: the largest logit, the sum of e^(logit - largest), the target's logit (0 where the
  // target, an index into the whole vocabulary, lies elsewhere or is ignored).
  virtual void cross_entropy_statistics(const VocabularyPart& part, const Tensor& logits,
                                        const Tensor& targets, Tensor statistics) = 0;
  // Then, from the statistics of all parts, f64 [parts, R, 3]: the losses, the same on all ranks,
  // and this part's gradient.
  virtual void cross_entropy_joined(const CrossEntropy& ce, const VocabularyPart& part,
                                    Tensor logits, const Tensor& targets, const Tensor& statistics,
                                    Tensor losses) = 0;

  // tokens[r] = the token at which the probabilities that are left of logits[R, Vp], added up in
  // order of ids, pass at[r] in [0, 1) of their sum; -1 where no token may be chosen, or a logit is
  // not a number or infinite. Tokens of less than 2^-64 of the likeliest's probability have none.
  virtual void choose_tokens(const TokenChoice& choice, const Tensor& logits,
                             std::span<const double> at, std::span<int32_t> tokens) = 0;
  virtual size_t choose_workspace(int64_t rows, int64_t vocabulary) const = 0;

  // ---- sums and the optimizer
  virtual void sum(const Tensor& x, Tensor total, bool accumulate) = 0;  // f32 -> f64 [1]
  // Adds the squares of an f32 tensor to an exact sum, i64 [ExactSum::size]: f64 sums of 64
  // elements in a fixed order each, joined without rounding. Pieces of a tensor cut at multiples of
  // 64 give the same as the whole, wherever they lie.
  virtual void sum_squares(const Tensor& x, Tensor exact) = 0;
  virtual size_t sum_workspace(int64_t elements) const = 0;
  // What a step decides: `exact`, i64 [ExactSum::size], and `state`, u8 [sizeof StepState], which
  // goes on.
  virtual void decide(const StepRules& rules, const Tensor& exact, Tensor state) = 0;
  // AdamW (Loshchilov and Hutter 2019, arXiv 1711.05101) with decoupled decay; all f32. `compute`
  // (bf16, f16 or empty) gets a rounded copy of the new weights.
  virtual void adamw(const AdamWStep& step, Tensor weights, const Tensor& grads, Tensor momentum,
                     Tensor variance, Tensor compute) = 0;
};

// Those that work in the memory in which `x` lies.
inline Ops& ops_of(Ops& ops, const Tensor& x) {
  return x.device == ops.device().kind() ? ops : ops.host();
}

// `threads` <= 0 takes all processors this process may use. `instruction_set` limits dispatch:
// "" (best), "avx2", "avx512", "avx512_bf16"; Error{environment} when the processor lacks it.
std::unique_ptr<Ops> make_cpu_ops(int threads, const std::string& instruction_set = "");

}  // namespace rankine

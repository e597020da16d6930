#pragma once
#include <cstddef>
#include <cstdint>

// The functions that are compiled once per instruction set, as tables of pointers. Plain data only:
// a kernel file includes this, kernels/scalar.h and kernels/parts.h and no other project header, so
// that no shared inline function is ever compiled with wide instructions.
namespace rankine {

// Index of arrays with one entry per storage type S of activations and weights.
enum Storage : int { storage_f32 = 0, storage_bf16 = 1, storage_f16 = 2 };

// Entries of `threads` are the OpenMP threads to use. Pointers are never null unless said.
struct CastRowsCall {
  const void* from;
  void* to;
  int64_t rows, width, from_stride, to_stride;  // strides in elements
  int threads;
};
struct CastKernels {  // cast.cpp
  // to[i] = from[i]; indexed [from][to], rounding to nearest even.
  void (*cast[3][3])(const void* from, void* to, int64_t count, int threads);
  void (*cast_rows[3][3])(const CastRowsCall& call);
};

// One thread's share of a work, from 0 to 1.
struct TeamPart {
  int thread;
  double from, to;
};
// Threads to divide work among: run(team, even, body, context) calls body(context, part) once on
// each; the shares are equal when `even`.
struct TeamCall {
  void* team;
  void (*run)(void* team, bool even, void (*body)(const void* context, TeamPart part),
              const void* context);
  int threads;
};

struct FewRowsCall {
  int64_t rows, inputs, outputs;
  const void *x, *w, *bias;  // bias may be null
  void* y;
  TeamCall team;
};
struct FewRowsKernels {  // few_rows.cpp
  void (*linear[3])(const FewRowsCall& call);
};

struct NormCall {
  bool layer;  // layer norm, else rms norm
  float epsilon;
  int64_t rows, width;
  const void *x, *residual, *weight, *bias;  // residual and bias may be null
  void *sum, *y;                             // sum may be null
  float* stats;                              // may be null
  int threads;
};
struct NormGradCall {
  bool layer, accumulate;
  int64_t rows, width;
  const void *x, *weight, *dy, *residual;  // residual may be null, and may be dx
  const float* stats;
  void* dx;
  float *dweight, *dbias;  // dbias may be null
  void* workspace;         // norm_workspace() bytes, 64-aligned
  int threads;
};
struct NormKernels {  // norm.cpp
  void (*norm[3])(const NormCall& call);
  void (*norm_again[3])(const NormCall& call);  // reads x, stats, weight, bias; writes y
  void (*norm_grad[3])(const NormGradCall& call);
  size_t (*workspace)(int64_t rows, int64_t width);
};

struct HeadNormCall {
  int64_t rows, heads, kv_heads, head_dim;
  float epsilon;
  const void *qkv, *q_weight, *k_weight;
  void* out;    // the gradient kernel works in place here (dqkv)
  float* rstd;  // [rows, heads + kv_heads]; the gradient kernel reads it
  float *dq_weight, *dk_weight;
  bool accumulate;
  void* workspace;
  int threads;
};
struct HeadNormKernels {  // head_norm.cpp
  void (*head_norm[3])(const HeadNormCall& call);
  void (*head_norm_grad[3])(const HeadNormCall& call);
  size_t (*workspace)(int64_t rows, int64_t head_dim);
};

struct ActivationCall {
  int64_t rows, width;  // of y
  const void* pre;      // [rows, width], swiglu [rows, 2 width]
  void* y;              // gradient: dy in, act(pre) out
  void* dpre;           // gradient only
  int threads;
};
struct ActivationKernels {  // activation.cpp
  void (*gelu_exact[3])(const ActivationCall& call);
  void (*gelu_tanh[3])(const ActivationCall& call);
  void (*swiglu[3])(const ActivationCall& call);
  void (*gelu_exact_grad[3])(const ActivationCall& call);
  void (*gelu_tanh_grad[3])(const ActivationCall& call);
  void (*swiglu_grad[3])(const ActivationCall& call);
};

struct DropoutCall {
  void* x;
  int64_t count;
  float probability;
  uint32_t key_low, key_high;
  uint64_t stream, first_index;
  int threads;
};
struct BiasGradCall {
  const void* dy;
  int64_t rows, width;
  float* db;
  bool accumulate;
  void* workspace;  // `bias_grad_workspace` bytes, may be null when that is 0
  int threads;
};
struct ElementKernels {  // pointwise.cpp
  void (*add[3])(const void* a, const void* b, void* y, int64_t count, int threads);
  void (*dropout[3])(const DropoutCall& call);
  void (*bias_grad[3])(const BiasGradCall& call);
  size_t (*bias_grad_workspace)(int64_t rows, int64_t width);
  // x[i] = the low `element_bytes` (2, 4 or 8) bytes of pattern
  void (*fill)(void* x, uint64_t pattern, int element_bytes, int64_t count, int threads);
};

struct FillNormalCall {
  float* x;
  int64_t count;
  uint32_t key_low, key_high;
  uint64_t first_index;
  float deviation;
  int threads;
};
struct RandomKernels {  // random.cpp
  void (*fill_normal)(const FillNormalCall& call);
};

struct RopeCall {
  int64_t rows, row_width, tokens, first_position, rotated_heads, head_dim;
  const float* table;
  void* qkv;
  bool inverse;
  int threads;
};
struct RopeKernels {  // rope.cpp
  void (*rope[3])(const RopeCall& call);
};

struct EmbedCall {
  const int32_t* ids;
  int64_t rows, width, tokens, first_position;
  int64_t first_token, table_rows;           // other ids add nothing
  const void *token_table, *position_table;  // position_table may be null
  void* y;
  int threads;
};
struct EmbedGradCall {
  const int32_t* ids;
  int64_t rows, width, tokens, first_position, first_token;
  const void* dy;
  float *dtoken_table, *dposition_table;  // dposition_table may be null
  int64_t vocabulary, positions;          // rows of the tables, cleared unless accumulated
  bool accumulate_tokens, accumulate_positions;
  int threads;
};
struct EmbedKernels {  // embed.cpp
  void (*embed[3])(const EmbedCall& call);
  void (*embed_grad[3])(const EmbedGradCall& call);
};

struct CrossEntropyCall {
  void* logits;
  const int32_t* targets;
  float* losses;
  int64_t rows, vocabulary, padded_vocabulary;
  float gradient_scale;
  bool gradient;
  int threads;
};
struct CrossEntropyPartCall {
  void* logits;
  const int32_t* targets;
  double* statistics;  // statistics(): of this part; joined(): of all parts
  int64_t rows, first, columns, padded_columns;
  int64_t parts;
  float* losses;
  float gradient_scale;
  bool gradient;
  int threads;
};
struct CrossEntropyKernels {  // cross_entropy.cpp
  void (*cross_entropy[3])(const CrossEntropyCall& call);
  void (*statistics[3])(const CrossEntropyPartCall& call);
  void (*joined[3])(const CrossEntropyPartCall& call);
};

struct ChooseCall {
  int64_t rows, vocabulary, row_stride;
  const void* logits;
  const int32_t* forbidden;
  int64_t forbidden_count;
  double temperature;  // 0: the likeliest
  int64_t top_k;       // 0: all
  double top_p;
  const double* at;
  int32_t* tokens;  // -1: none can be chosen
  void* workspace;
  int threads;
  TeamCall team;
};
struct ChooseKernels {  // choose.cpp
  void (*choose[3])(const ChooseCall& call);
  size_t (*workspace)(const ChooseCall& call);  // reads sizes and threads
};

struct SumKernels {  // sums.cpp
  void (*sum)(const float* x, int64_t count, double* total, bool accumulate, void* workspace,
              int threads);
  void (*sum_squares)(const float* x, int64_t count, int64_t* exact, int threads);
  size_t (*workspace)(int64_t count);
};

struct AdamWCall {
  float lr, beta1, beta2, epsilon, weight_decay, bias_correction1, bias_correction2, gradient_scale;
  int64_t count;
  float* weights;
  const float* grads;
  float *momentum, *variance;
  void* compute;  // f32 entry: null
  int threads;
};
struct OptimizerKernels {                   // optimizer.cpp
  void (*adamw[3])(const AdamWCall& call);  // indexed by the storage type of `compute`
};

struct AttentionCall {
  int64_t batch, tokens, heads, kv_heads, head_dim, window;
  const void *qkv, *dout;
  void *out, *dqkv;  // the gradient reads out and writes dqkv
  float* lse;
  void* workspace;  // `workspace` bytes, 64-aligned
  int threads;
  const int32_t* first_keys;  // [batch, tokens], or null: each sequence is one document
};
struct CachedAttentionCall {
  int64_t tokens, heads, kv_heads, head_dim, window, past, positions;
  const void* qkv;
  void *k_cache, *v_cache, *out;
  void* workspace;
  int threads;
  TeamCall team;  // for one token; several take OpenMP's threads
};
struct AttentionKernels {  // attention.cpp, attention_grad.cpp, attention_cached.cpp
  void (*attention[3])(const AttentionCall& call);
  void (*attention_grad[3])(const AttentionCall& call);
  // Sequences of one shape, with one workspace.
  void (*attention_cached[3])(const CachedAttentionCall* calls, int64_t count);
  size_t (*workspace[3])(const AttentionCall& call);  // of both directions; reads sizes and threads
  size_t (*cached_workspace)(const CachedAttentionCall& call);
};

struct KernelTable {
  CastKernels casts;
  FewRowsKernels few_rows;
  AttentionKernels attention;
  NormKernels norms;
  HeadNormKernels head_norms;
  ActivationKernels activations;
  ElementKernels elements;
  RandomKernels random;
  RopeKernels ropes;
  EmbedKernels embeds;
  CrossEntropyKernels cross_entropies;
  ChooseKernels choices;
  SumKernels sums;
  OptimizerKernels optimizers;
};

namespace avx2 {
KernelTable kernels();
}
namespace avx512 {
KernelTable kernels();
}
namespace avx512_bf16 {
KernelTable kernels();
}
namespace avx2_pairs {
// Attention as with avx512_bf16's pair products, emulated: for testing that path anywhere.
AttentionKernels attention_kernels();
}  // namespace avx2_pairs

}  // namespace rankine

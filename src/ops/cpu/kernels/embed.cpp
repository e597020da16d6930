#include <cstring>

#include "ops/cpu/kernels/blocks.h"
#include "ops/cpu/kernels/parts.h"
#include "ops/cpu/kernels/scalar.h"

namespace rankine::RANKINE_ISA {
namespace {

template <class S>
void add_rows(const S* a, const S* b, S* y, int64_t width) {
#pragma omp simd
  for (int64_t c = 0; c < width; ++c) down(y[c], up(a[c]) + up(b[c]));
}

template <class S>
void embed(const EmbedCall& call) {
  const S *table = static_cast<const S*>(call.token_table),
          *positions = static_cast<const S*>(call.position_table);
  S* y = static_cast<S*>(call.y);
  const int64_t width = call.width;
  for_rows(call.rows, width, call.threads, [&, table, positions, y, width](int64_t r) {
    const int64_t id = call.ids[r] - call.first_token;
    const bool here = id >= 0 && id < call.table_rows;
    const S* token = table + (here ? id : 0) * width;
    const size_t bytes = static_cast<size_t>(width) * sizeof(S);
    const S* position = positions == nullptr
                            ? nullptr
                            : positions + (call.first_position + r % call.tokens) * width;
    S* to = y + r * width;
    if (here && position != nullptr)
      add_rows(token, position, to, width);
    else if (here || position != nullptr)
      std::memcpy(to, here ? token : position, bytes);
    else
      std::memset(to, 0, bytes);
  });
}

void clear(float* x, int64_t count, int threads) {
  for_blocks(count, threads, [x](int64_t first, int64_t n) {
    std::memset(x + first, 0, static_cast<size_t>(n) * sizeof(float));
  });
}

template <class S>
void add_to(float* sum, const S* x, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) sum[i] += up(x[i]);
}

template <class S>
void embed_grad(const EmbedGradCall& call) {
  const int64_t width = call.width;
  const S* dy = static_cast<const S*>(call.dy);
  if (!call.accumulate_tokens) clear(call.dtoken_table, call.vocabulary * width, call.threads);
  if (call.dposition_table != nullptr && !call.accumulate_positions)
    clear(call.dposition_table, call.positions * width, call.threads);
  // Two rows may name the same token, so threads own columns, not rows.
  constexpr int64_t line = 16;
  const int64_t lines = blocks_of(width, line), parts = smaller(call.threads, lines);
  for_each(parts, threads_for(call.rows * width, call.threads), [&, dy, width](int64_t p) {
    const int64_t first = lines * p / parts * line;
    const int64_t count = smaller(lines * (p + 1) / parts * line, width) - first;
    for (int64_t r = 0; r < call.rows; ++r) {
      const S* row = dy + r * width + first;
      const int64_t id = call.ids[r] - call.first_token;
      if (id >= 0 && id < call.vocabulary)
        add_to(call.dtoken_table + id * width + first, row, count);
      if (call.dposition_table == nullptr) continue;
      const int64_t position = call.first_position + r % call.tokens;
      add_to(call.dposition_table + position * width + first, row, count);
    }
  });
}

}  // namespace

EmbedKernels embed_kernels() {
  return {.embed = {embed<float>, embed<Bf16>, embed<F16>},
          .embed_grad = {embed_grad<float>, embed_grad<Bf16>, embed_grad<F16>}};
}

}  // namespace rankine::RANKINE_ISA

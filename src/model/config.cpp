#include "model/config.h"

#include "base/error.h"

namespace rankine {
namespace {

void require_positive(std::string_view name, int64_t value) {
  require(value > 0, ErrorKind::data, "model: {} is {}, it must be positive", name, value);
}

void check_rope(const ModelConfig& c) {
  require(c.head_dim % 2 == 0, ErrorKind::data,
          "model: head size {} is odd, rotary embedding needs pairs", c.head_dim);
  require(c.rope.theta > 1, ErrorKind::data, "model: rope theta is {}, it must be above 1",
          c.rope.theta);
  require(c.rope.factor > 0, ErrorKind::data, "model: rope factor is {}, it must be positive",
          c.rope.factor);
  if (c.rope.kind == RopeKind::llama3 || c.rope.kind == RopeKind::yarn)
    require_positive("original positions of the rope scaling", c.rope.original_positions);
  if (c.rope.kind == RopeKind::llama3)
    require(c.rope.high_freq_factor > c.rope.low_freq_factor && c.rope.low_freq_factor > 0,
            ErrorKind::data,
            "model: rope frequency factors {} (low) and {} (high) are not in order",
            c.rope.low_freq_factor, c.rope.high_freq_factor);
}

}  // namespace

std::string_view family_name(Family family) {
  switch (family) {
    case Family::gpt2:
      return "gpt2";
    case Family::llama:
      return "llama";
    case Family::qwen2:
      return "qwen2";
    case Family::qwen3:
      return "qwen3";
    case Family::mistral:
      return "mistral";
  }
  return "?";
}

void check(const ModelConfig& c) {
  require_positive("vocabulary", c.vocabulary);
  require_positive("hidden size", c.hidden);
  require_positive("number of layers", c.layers);
  require_positive("number of heads", c.heads);
  require_positive("number of key/value heads", c.kv_heads);
  require_positive("head size", c.head_dim);
  require_positive("feed-forward size", c.feed_forward);
  require_positive("number of positions", c.positions);
  require(c.heads % c.kv_heads == 0, ErrorKind::data,
          "model: {} heads cannot share {} key/value heads evenly", c.heads, c.kv_heads);
  require(c.norm_epsilon > 0, ErrorKind::data, "model: norm epsilon is {}, it must be positive",
          c.norm_epsilon);
  require(c.window >= 0, ErrorKind::data, "model: sliding window is {}", c.window);
  require(c.layer_windowed.empty() || c.layer_windowed.size() == static_cast<size_t>(c.layers),
          ErrorKind::data, "model: {} layer types for {} layers", c.layer_windowed.size(),
          c.layers);
  constexpr int64_t most = int64_t{1} << 31;
  for (const int64_t size :
       {c.vocabulary, c.hidden, c.layers, c.feed_forward, c.positions, c.heads * c.head_dim})
    require(size < most, ErrorKind::data, "model: a size of {} is beyond what is supported", size);
  if (c.position == PositionKind::rope) check_rope(c);
}

}  // namespace rankine

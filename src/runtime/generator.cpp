#include "runtime/generator.h"

#include <algorithm>

namespace rankine {
namespace {

constexpr int64_t prompt_piece = 256;

template <class T>
void widen(const std::byte* raw, std::span<float> to) {
  const T* from = reinterpret_cast<const T*>(raw);
  std::transform(from, from + to.size(), to.begin(), [](T x) { return to_float(x); });
}

}  // namespace

ExecutorSetup generation_setup(DType compute, int64_t positions) {
  return {.shape = {1, std::min(positions, prompt_piece)},
          .compute = compute,
          .purpose = Purpose::inference,
          .positions = positions,
          .cached = true};
}

void download_floats(Ops& ops, const Tensor& from, std::vector<std::byte>& raw,
                     std::span<float> to) {
  raw.resize(static_cast<size_t>(from.bytes()));
  ops.download(from, raw.data());
  switch (from.dtype) {
    case DType::f32:
      return widen<float>(raw.data(), to);
    case DType::bf16:
      return widen<Bf16>(raw.data(), to);
    case DType::f16:
      return widen<F16>(raw.data(), to);
    default:
      fail(ErrorKind::internal, "floats are downloaded from float tensors");
  }
}

Generator::Generator(Engine& engine, const SamplerOptions& options)
    : engine_(engine),
      sampler_(options),
      logits_(static_cast<size_t>(engine.config().vocabulary)) {}

std::span<const float> Generator::append(std::span<const int32_t> ids) {
  Executor& executor = engine_.executor();
  Tensor row;
  while (!ids.empty()) {
    const size_t n = std::min(ids.size(), static_cast<size_t>(engine_.setup().shape.tokens));
    row = executor.logits(ids.first(n), {1, static_cast<int64_t>(n)}, past_, 1);
    past_ += static_cast<int64_t>(n);
    ids = ids.subspan(n);
  }
  download_floats(executor.ops(), row.range(0, engine_.config().vocabulary), raw_, logits_);
  return logits_;
}

bool Generator::ends_text(int32_t id) const {
  const ModelConfig& c = engine_.config();
  return id == c.eos ||
         std::find(c.more_eos.begin(), c.more_eos.end(), int64_t{id}) != c.more_eos.end();
}

void Generator::run(std::span<const int32_t> prompt, int64_t most,
                    const std::function<bool(int32_t)>& emit) {
  const int64_t needed = past_ + static_cast<int64_t>(prompt.size()) + most;
  require(needed <= engine_.setup().positions, ErrorKind::usage,
          "{} tokens of text do not fit the {} positions there are", needed,
          engine_.setup().positions);
  std::span<const float> logits = append(prompt);
  for (int64_t i = 0; i < most; ++i) {
    const int32_t id = sampler_.choose(logits, static_cast<uint64_t>(past_));
    if (ends_text(id) || !emit(id)) return;
    if (i + 1 < most) logits = append(std::span(&id, 1));
  }
}

}  // namespace rankine

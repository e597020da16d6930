#pragma once
#include <functional>
#include <span>
#include <vector>

#include "runtime/engine.h"
#include "runtime/sampler.h"

namespace rankine {

// Continues one sequence token by token over an engine with key/value caches.
class Generator {
 public:
  // `engine` is allocated, for inference, with caches.
  Generator(Engine& engine, const SamplerOptions& options);

  // Appends the prompt (at least one token) and up to `most` chosen tokens; each is passed to
  // `emit` as soon as it is known, which returns false to stop. End-of-text tokens stop too and are
  // not emitted. Error{usage} when prompt and `most` exceed the caches' positions.
  void run(std::span<const int32_t> prompt, int64_t most, const std::function<bool(int32_t)>& emit);
  // The logits [V] behind the last of `ids`, all of which are new; f32.
  std::span<const float> append(std::span<const int32_t> ids);

 private:
  bool ends_text(int32_t id) const;

  Engine& engine_;
  Sampler sampler_;
  int64_t past_ = 0;
  std::vector<float> logits_;
  std::vector<std::byte> raw_;
};

// The setup of an engine that generates sequences of up to `positions` tokens; prompts are read in
// pieces of at most 256.
ExecutorSetup generation_setup(DType compute, int64_t positions);

// `count` elements of a float tensor in any float dtype, as f32 on the host.
void download_floats(Ops& ops, const Tensor& from, std::vector<std::byte>& raw,
                     std::span<float> to);

}  // namespace rankine

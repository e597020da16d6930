#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "inference/sampler.h"
#include "runtime/engine.h"

namespace rankine {

// A text to continue.
struct TextRequest {
  std::vector<int32_t> prompt;  // at least one token
  int64_t most = 256;           // tokens to write
  uint64_t sample = 0;          // of several texts of one prompt, which
};

enum class TextEnd : uint8_t { length, end_token, stopped };

// Continues texts token by token over an engine with key/value caches, as many at once as it has
// caches for. What a text becomes does not depend on those beside it.
class Generator {
 public:
  // The text of one request grows by a token, which `emit` may stop. End tokens are not emitted.
  using Emit = std::function<bool(size_t request, int32_t id)>;

  // `engine` is allocated, for inference, with caches; the texts end at `end_tokens`.
  Generator(Engine& engine, const SamplerOptions& options, std::vector<int32_t> end_tokens);
  // These tokens are never chosen: the vocabulary's ids without a meaning.
  void forbid(std::vector<int32_t> tokens) { forbidden_ = std::move(tokens); }

  using Ended = std::function<void(size_t request, TextEnd end)>;
  // Calls `ended` once for each request. Error{usage} when one does not fit the caches.
  void run(std::span<const TextRequest> requests, const Emit& emit, const Ended& ended);
  // One request that reads only what its prompt has beyond what the first cache still holds, for
  // conversations.
  TextEnd run_on(const TextRequest& request, const Emit& emit);
  // The logits [V] behind the last of `ids`, which follow those in the first cache; f32.
  std::span<const float> append(std::span<const int32_t> ids);

 private:
  struct Text {
    size_t request;
    int64_t slot, left;
    uint64_t sample;
    int32_t last;
  };
  Tensor read(int64_t slot, std::span<const int32_t> ids);
  void check(const TextRequest& request) const;
  bool start(const TextRequest& request, Text& text, const Emit& emit, TextEnd& end);
  bool go_on(Text& text, const Emit& emit, TextEnd& end);
  void decode(std::span<Text> texts);
  void choose(const Tensor& logits, std::span<Text> texts);

  Engine& engine_;
  SamplerOptions options_;
  std::vector<int32_t> end_tokens_, forbidden_;
  std::vector<std::vector<int32_t>> held_;  // by slot: the tokens in its caches
  std::vector<float> logits_;               // of the token last appended
  std::vector<std::byte> raw_;
};

// The setup of an engine that generates `sequences` texts at once of up to `positions` tokens each;
// prompts are read in pieces of at most 256.
ExecutorSetup generation_setup(DType compute, int64_t positions, int64_t sequences = 1);

// All elements of a float tensor in any float dtype, as f32 on the host.
void download_floats(Ops& ops, const Tensor& from, std::vector<std::byte>& raw,
                     std::span<float> to);

}  // namespace rankine

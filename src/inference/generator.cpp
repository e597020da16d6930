#include "inference/generator.h"

#include <algorithm>
#include <numeric>

namespace rankine {
namespace {

constexpr int64_t prompt_piece = 256;

template <class T>
void widen(const std::byte* raw, std::span<float> to) {
  const T* from = reinterpret_cast<const T*>(raw);
  std::transform(from, from + to.size(), to.begin(), [](T x) { return to_float(x); });
}

}  // namespace

ExecutorSetup generation_setup(DType compute, int64_t positions, int64_t sequences) {
  return {.shape = {1, std::max(std::min(positions, prompt_piece), sequences)},
          .compute = compute,
          .purpose = Purpose::inference,
          .positions = positions,
          .sequences = sequences};
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

Generator::Generator(Engine& engine, const SamplerOptions& options, std::vector<int32_t> end_tokens)
    : engine_(engine),
      options_(options),
      end_tokens_(std::move(end_tokens)),
      held_(static_cast<size_t>(engine.setup().sequences)) {}

std::span<const float> Generator::append(std::span<const int32_t> ids) {
  logits_.resize(static_cast<size_t>(engine_.config().vocabulary));
  download_floats(engine_.executor().ops(),
                  read(0, ids).range(0, static_cast<int64_t>(logits_.size())), raw_, logits_);
  return logits_;
}

// The logits [1, Vp] behind the last of `ids`.
Tensor Generator::read(int64_t slot, std::span<const int32_t> ids) {
  std::vector<int32_t>& held = held_[static_cast<size_t>(slot)];
  Tensor row;
  while (!ids.empty()) {
    const size_t n = std::min(ids.size(), static_cast<size_t>(engine_.setup().shape.tokens));
    const CachedSequence sequence{slot, static_cast<int64_t>(held.size())};
    row = engine_.executor().logits(ids.first(n), {1, static_cast<int64_t>(n)},
                                    std::span(&sequence, 1), 1);
    held.insert(held.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n));
    ids = ids.subspan(n);
  }
  return row;
}

// One more token of every text, together: the weights are read once.
void Generator::decode(std::span<Text> texts) {
  std::vector<CachedSequence> sequences;
  std::vector<int32_t> ids;
  for (const Text& text : texts) {
    std::vector<int32_t>& held = held_[static_cast<size_t>(text.slot)];
    sequences.push_back({text.slot, static_cast<int64_t>(held.size())});
    ids.push_back(text.last);
    held.push_back(text.last);
  }
  const auto count = static_cast<int64_t>(texts.size());
  choose(engine_.executor().logits(ids, {count, 1}, sequences, count), texts);
}

// Sets the last token of each text from its row of the logits.
void Generator::choose(const Tensor& logits, std::span<Text> texts) {
  std::vector<double> places;
  std::vector<int32_t> tokens(texts.size());
  for (const Text& text : texts)
    places.push_back(
        sampling_place(options_, held_[static_cast<size_t>(text.slot)].size(), text.sample));
  engine_.executor().ops().choose_tokens(
      token_choice(options_, engine_.config().vocabulary, forbidden_), logits, places, tokens);
  for (size_t t = 0; t < texts.size(); ++t) {
    require(tokens[t] >= 0, ErrorKind::data,
            "the model's logits are not finite numbers: its weights are damaged, or too large for "
            "--precision");
    texts[t].last = tokens[t];
  }
}

// Emits the text's last token; false when the text ends there.
bool Generator::go_on(Text& text, const Emit& emit, TextEnd& end) {
  end = TextEnd::end_token;
  if (std::ranges::find(end_tokens_, text.last) != end_tokens_.end()) return false;
  end = TextEnd::stopped;
  if (!emit(text.request, text.last)) return false;
  end = TextEnd::length;
  return --text.left > 0;
}

bool Generator::start(const TextRequest& request, Text& text, const Emit& emit, TextEnd& end) {
  const size_t known = held_[static_cast<size_t>(text.slot)].size();
  choose(read(text.slot, std::span(request.prompt).subspan(known)), std::span(&text, 1));
  return go_on(text, emit, end);
}

void Generator::check(const TextRequest& request) const {
  expect(!request.prompt.empty() && request.most > 0, "a prompt, and a token to write");
  const int64_t needed = static_cast<int64_t>(request.prompt.size()) + request.most;
  require(needed <= engine_.setup().positions, ErrorKind::usage,
          "{} tokens of text do not fit the {} positions there are", needed,
          engine_.setup().positions);
}

void Generator::run(std::span<const TextRequest> requests, const Emit& emit, const Ended& ended) {
  for (const TextRequest& request : requests) check(request);
  std::vector<Text> running;
  std::vector<int64_t> free_slots(held_.size());
  std::iota(free_slots.rbegin(), free_slots.rend(), 0);
  for (size_t next = 0; next < requests.size() || !running.empty();) {
    TextEnd end = TextEnd::length;
    if (next < requests.size() && !free_slots.empty()) {
      Text text{next, free_slots.back(), requests[next].most, requests[next].sample, 0};
      held_[static_cast<size_t>(text.slot)].clear();
      if (start(requests[next], text, emit, end)) {
        running.push_back(text);
        free_slots.pop_back();
      } else {
        ended(next, end);
      }
      ++next;
      continue;
    }
    decode(running);
    std::vector<Text> still;
    for (Text& text : running) {
      if (go_on(text, emit, end)) {
        still.push_back(text);
        continue;
      }
      free_slots.push_back(text.slot);
      ended(text.request, end);
    }
    running = std::move(still);
  }
}

TextEnd Generator::run_on(const TextRequest& request, const Emit& emit) {
  check(request);
  std::vector<int32_t>& held = held_[0];
  const auto [known, end_of_known] = std::ranges::mismatch(held, request.prompt);
  // The last token is read again: its logits are wanted.
  held.resize(std::min(static_cast<size_t>(known - held.begin()), request.prompt.size() - 1));
  Text text{0, 0, request.most, request.sample, 0};
  TextEnd end = TextEnd::length;
  bool more = start(request, text, emit, end);
  while (more) {
    decode(std::span(&text, 1));
    more = go_on(text, emit, end);
  }
  return end;
}

}  // namespace rankine

#include "base/random.h"
#include "bench/bench.h"
#include "inference/generator.h"
#include "machine/peak.h"
#include "machine/process.h"
#include "ops/backend.h"

namespace rankine {
namespace {

constexpr int64_t prompt_tokens = 16, tokens_between_readings = 8;

// What a token needs of the model: everything but tables in which rows are looked up.
double weight_bytes(const Engine& engine) {
  int64_t elements = 0;
  for (const BlockDescription& block : engine.executor().descriptions())
    for (const ParamSpec& spec : block.parameters)
      if (block.name != "embedding" ||
          (engine.config().tied && spec.name == "embedding.tokens.weight"))
        elements += spec.shape.elements();
  return static_cast<double>(elements * dtype_bytes(engine.setup().compute));
}

std::vector<TextRequest> requests_of(const BenchOptions& o, int64_t vocabulary) {
  std::vector<TextRequest> requests;
  for (int64_t text = 0; text < o.batch_size; ++text) {
    TextRequest& request = requests.emplace_back();
    request.most = o.generate;
    for (int64_t i = 0; i < prompt_tokens; ++i)
      request.prompt.push_back(
          static_cast<int32_t>(philox(random_key(1, "bench prompt"), static_cast<uint64_t>(i),
                                      static_cast<uint64_t>(text))[0] %
                               static_cast<uint64_t>(vocabulary)));
  }
  return requests;
}

}  // namespace

GenerateFigures measure_generating(const BenchOptions& o, const ModelConfig& config, DType dtype) {
  const int64_t positions = prompt_tokens + o.generate;
  require(positions <= config.positions, ErrorKind::usage,
          "--generate {} and a prompt of {} exceed the model's {} positions", o.generate,
          prompt_tokens, config.positions);
  require(o.generate > 2 * tokens_between_readings, ErrorKind::usage,
          "--generate {}: at least {} tokens are needed for a median", o.generate,
          2 * tokens_between_readings + 1);
  const auto cpu_ops = make_backend({o.device, static_cast<int>(o.threads), o.instruction_set}).ops;
  TimedOps timed(*cpu_ops);
  Ops* ops = o.profile ? static_cast<Ops*>(&timed) : cpu_ops.get();
  Engine engine(*ops, config, generation_setup(dtype, positions, o.batch_size));
  require_memory(engine.plan(), {.all = o.memory_limit > 0 ? o.memory_limit : physical_memory()},
                 "to make it fit: a smaller --batch-size, --generate or --model");
  engine.allocate();
  engine.store().initialise(1);
  MemoryReading reading(ops->threads());
  Generator generator(engine, {}, {});  // draws tokens as `rankine generate` does by default
  GenerateFigures f;
  f.weight_bytes = weight_bytes(engine);
  const double cache_of_token = static_cast<double>(2 * config.layers * config.kv_width() *
                                                    dtype_bytes(dtype) * o.batch_size);
  f.cache_bytes =
      cache_of_token * (static_cast<double>(prompt_tokens) + static_cast<double>(o.generate) / 2);
  std::vector<double> seconds, shares, rates;
  double begin = 0;
  int64_t token = 0;
  // Of the last text: when its token is there, those of all texts are.
  const auto last = static_cast<size_t>(o.batch_size - 1);
  generator.run(
      requests_of(o, config.vocabulary),
      [&](size_t text, int32_t) {
        if (text != last) return true;
        const double now = monotonic_seconds();
        if (token > 0 && token % tokens_between_readings != 1) {  // that one follows a reading
          const double read =
              f.weight_bytes + cache_of_token * static_cast<double>(prompt_tokens + token);
          seconds.push_back(now - begin);
          shares.push_back(read / (now - begin) / rates.back());
        }
        if (++token % tokens_between_readings == 1) rates.push_back(reading.bytes_per_second());
        f.profile = timed.lines();
        timed.reset();
        begin = monotonic_seconds();
        return true;
      },
      [](size_t, TextEnd) {});
  f.seconds = median(seconds);
  f.tokens_per_second = static_cast<double>(o.batch_size) / f.seconds;
  f.read_bytes_per_second = median(rates);
  f.share = median(shares);
  f.planned_bytes = engine.plan().peak_bytes(Tier::device);
  return f;
}

}  // namespace rankine

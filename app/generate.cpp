#include <cstdio>

#include "base/text.h"
#include "command.h"
#include "model_source.h"
#include "runtime/generator.h"
#include "runtime/options.h"
#include "runtime/process.h"

namespace rankine {
namespace {

struct GenerateOptions {
  std::string model, prompt;
  std::vector<std::string> prompt_ids;
  int64_t max_tokens = 256, threads = 0;
  std::string instruction_set;
  Precision precision = Precision::f32;
  uint64_t memory_limit = 0;
  SamplerOptions sampler;
};

OptionTable declare(GenerateOptions& o) {
  OptionTable table;
  table.heading("Model and prompt");
  table.text({"model", "load"}, &o.model, "folder of a run, a checkpoint or a Hugging Face model",
             "FOLDER");
  table.text({"prompt"}, &o.prompt, "text to continue");
  table.texts({"prompt-ids"}, &o.prompt_ids,
              "token ids to continue, for models whose tokenizer is not known here; prints ids",
              "ID");
  table.integer({"max-tokens"}, &o.max_tokens, "most tokens to write", {.least = 1});
  declare_precision_option(table, o.precision);
  declare_options(table, o.sampler);
  table.heading("Machine");
  declare_machine_options(table, o.threads, o.instruction_set);
  table.bytes({"memory-limit"}, &o.memory_limit,
              "refuse to start when the plan needs more; 0: the machine's memory");
  return table;
}

std::vector<int32_t> prompt_tokens(const GenerateOptions& o, const ModelSource& source) {
  std::vector<int32_t> ids;
  if (o.prompt_ids.empty()) {
    require(source.tokenizer == "bytes", ErrorKind::usage,
            "the tokenizer of '{}' is not known here; give the prompt as --prompt-ids", o.model);
    for (const char byte : o.prompt) ids.push_back(static_cast<uint8_t>(byte));
    if (ids.empty()) ids.push_back(static_cast<int32_t>(std::max<int64_t>(0, source.config.eos)));
    return ids;
  }
  require(o.prompt.empty(), ErrorKind::usage, "--prompt and --prompt-ids exclude each other");
  for (const std::string& word : o.prompt_ids) {
    size_t used = 0;
    int64_t id = -1;
    try {
      id = std::stoll(word, &used);
    } catch (const std::exception&) {
      used = 0;
    }
    require(used == word.size() && id >= 0 && id < source.config.vocabulary, ErrorKind::usage,
            "--prompt-ids '{}' is no token id below the vocabulary's size {}", word,
            source.config.vocabulary);
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

}  // namespace

int run_generate(const Arguments& arguments) {
  GenerateOptions o;
  OptionTable table = declare(o);
  if (parse_options(table, arguments).help) {
    fmt::print("{}", help_text(table, "rankine generate", "Continues a prompt with a model."));
    return 0;
  }
  require(!o.model.empty(), ErrorKind::usage,
          "--model is missing: the folder of a run, a checkpoint or a Hugging Face model");
  Log log(stderr);
  const ModelSource source = open_model(o.model);
  require(source.kind != ModelSource::Kind::preset, ErrorKind::usage,
          "'{}' is a preset, a shape without weights; give the folder of a model", o.model);
  const std::vector<int32_t> prompt = prompt_tokens(o, source);
  const int64_t positions = static_cast<int64_t>(prompt.size()) + o.max_tokens;
  require(positions <= source.config.positions, ErrorKind::usage,
          "a prompt of {} tokens and --max-tokens {} exceed the model's {} positions",
          prompt.size(), o.max_tokens, source.config.positions);

  const auto ops = make_cpu_ops(static_cast<int>(o.threads), o.instruction_set);
  Engine engine(*ops, source.config, generation_setup(compute_dtype(o.precision, *ops), positions));
  require_memory(engine.plan(), {.all = o.memory_limit > 0 ? o.memory_limit : physical_memory()},
                 "choose a smaller --max-tokens or model, or --precision f32 (no second copy)");
  engine.allocate();
  load_weights_from(source, engine, log);

  const bool as_ids = !o.prompt_ids.empty();
  if (!as_ids) std::fwrite(o.prompt.data(), 1, o.prompt.size(), stdout);
  Generator generator(engine, o.sampler);
  generator.run(prompt, o.max_tokens, [&](int32_t id) {
    if (as_ids)
      fmt::print("{} ", id);
    else if (id < 256)
      std::fputc(id, stdout);
    std::fflush(stdout);
    return std::ferror(stdout) == 0;
  });
  std::fputc('\n', stdout);
  require(std::fflush(stdout) == 0, ErrorKind::environment, "cannot write to standard output");
  return 0;
}

}  // namespace rankine

#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/hf_model.h"
#include "command.h"
#include "inference/generator.h"
#include "library/model_source.h"
#include "library/ranks.h"
#include "machine/process.h"
#include "ops/backend.h"
#include "options/run_options.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

enum class Layout : uint8_t { hugging_face, checkpoint };

struct ConvertOptions {
  std::string from;
  fs::path to;
  Layout layout = Layout::hugging_face;
  DType dtype = DType::bf16;
  uint64_t max_shard_size = 5'000'000'000;
  int64_t threads = 0;
  uint64_t memory_limit = 0;
  std::string device = "cpu";
  std::string instruction_set;
};

OptionTable declare(ConvertOptions& o) {
  OptionTable table;
  table.heading("Conversion");
  table.text({"from"}, &o.from, "folder of a run, a checkpoint or a Hugging Face model", "FOLDER");
  table.path({"to"}, &o.to, "folder to write; it appears complete or not at all");
  table.choice<Layout>({"layout"}, &o.layout,
                       {{"hf", Layout::hugging_face}, {"checkpoint", Layout::checkpoint}},
                       "what to write: a Hugging Face folder, or a checkpoint of f32 weights");
  table.choice<DType>({"dtype"}, &o.dtype,
                      {{"f32", DType::f32}, {"bf16", DType::bf16}, {"f16", DType::f16}},
                      "of the weights in a Hugging Face folder");
  table.bytes({"max-shard-size"}, &o.max_shard_size,
              "largest file of weights in a Hugging Face folder");
  table.heading("Machine");
  declare_machine_options(table, {&o.device, &o.threads, &o.instruction_set});
  table.bytes({"memory-limit"}, &o.memory_limit,
              "refuse to start when the plan needs more; 0: the machine's memory");
  return table;
}

void write_checkpoint(const fs::path& to, const ModelSource& source, Engine& engine) {
  RunState state;
  state.model = source.config;
  state.tokenizer = source.tokenizer;
  const std::vector<NamedTensor> weights = engine.store().weights();
  const std::vector<TensorGroup> groups{{"weights", weights}};
  save_checkpoint(to, run_state_text(state), groups, engine.executor().ops(),
                  carried_files(source));
}

void write_hugging_face(const ConvertOptions& o, const ModelSource& source, Engine& engine) {
  const HfExport settings{
      .dtype = o.dtype, .max_shard_bytes = o.max_shard_size, .extra_files = carried_files(source)};
  export_hf(o.to, source.config, engine.store().weights(), settings, engine.executor().ops());
}

}  // namespace

int run_convert(const CommandArguments& arguments) {
  ConvertOptions o;
  OptionTable table = declare(o);
  if (parse_options(table, arguments).help) {
    fmt::print("{}", help_text(table, "rankine convert",
                               "Turns checkpoints into Hugging Face folders and back."));
    return 0;
  }
  require(!o.from.empty() && !o.to.empty(), ErrorKind::usage, "{} missing",
          o.from.empty() ? (o.to.empty() ? "--from and --to are" : "--from is") : "--to is");
  if (o.layout == Layout::checkpoint)
    refuse_without_effect(table, {"dtype", "max-shard-size"}, "with --layout checkpoint");
  check_threads(o.threads);
  Log log(stderr);
  const ModelSource source = open_model(o.from);
  require(source.kind != ModelSource::Kind::preset, ErrorKind::usage,
          "'{}' is a preset, a shape without weights; give the folder of a model", o.from);
  const auto ops = make_backend({o.device, static_cast<int>(o.threads), o.instruction_set}).ops;
  ExecutorSetup setup = generation_setup(DType::f32, 1);
  setup.sequences = 0;
  Engine engine(*ops, source.config, setup);
  require_memory(engine.plan(), {.all = o.memory_limit > 0 ? o.memory_limit : physical_memory()},
                 "the weights are held once in f32: a machine with more memory is needed");
  engine.allocate();
  load_weights_from(source, engine, log);
  if (!source.tokenizer_fault.empty())
    warn_line(log, "the tokenizer is not understood, its files are copied as they are: {}",
              source.tokenizer_fault);
  if (o.layout == Layout::checkpoint)
    write_checkpoint(o.to, source, engine);
  else
    write_hugging_face(o, source, engine);
  log_line(log, "wrote '{}' ({})", o.to.string(),
           o.layout == Layout::checkpoint ? "checkpoint" : "Hugging Face layout");
  return 0;
}

}  // namespace rankine

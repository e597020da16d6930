#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "command.h"
#include "data/options.h"
#include "library/layout.h"
#include "library/memory_picture.h"
#include "library/model_source.h"
#include "library/outputs.h"
#include "library/ranks.h"
#include "ops/backend.h"
#include "options/parallel_options.h"
#include "options/run_options.h"
#include "planner/model_states.h"
#include "planner/traffic.h"

namespace rankine {
namespace {

using Json = nlohmann::ordered_json;

struct PlanOptions {
  std::string model, parameters;
  int64_t accumulation = 1;
  int64_t micro_batch_size = 1, seq_length = 0;
  bool print_program = false, document_mask = false;
  double dropout = 0;
  int64_t threads = 0;
  std::string device = "cpu";
  std::string instruction_set;
  ParallelOptions parallel{.data_parallel = 1};
  double rank_flops = 0, memory_bandwidth = 0;
  uint64_t link_bandwidth = 0, tier_bandwidth = 0;
  std::optional<DType> precision;  // none: as the ZeRO paper counts
  std::filesystem::path json;

  int64_t data_degree() const { return parallel.data_parallel; }
  MeshShape mesh() const {
    return mesh_of(parallel, static_cast<int>(data_degree() * parallel.tensor_parallel *
                                              parallel.pipeline_parallel));
  }
};

OptionTable declare(PlanOptions& o) {
  OptionTable table;
  table.heading("Plan");
  table.text({"model"}, &o.model, "preset, Hugging Face folder, checkpoint or run to plan for",
             "NAME");
  table.text({"parameters"}, &o.parameters,
             "plan for this number of parameters instead of a model: 7.5e9, 7.5B, 125M", "COUNT");
  table.integer({"accumulation", "gradient-accumulation-steps"}, &o.accumulation,
                "micro-batches whose gradients are summed", {.least = 1, .most = most_micros});
  table.choice<std::optional<DType>>(
      {"precision"}, &o.precision,
      {{"paper", std::nullopt}, {"f32", DType::f32}, {"bf16", DType::bf16}, {"f16", DType::f16}},
      "bytes per parameter: what training here in that dtype holds, "
      "or 2 + 2 + 12 as the ZeRO paper counts");
  table.path({"json"}, &o.json, "also write the plan as JSON here");
  table.heading("Memory and step program of a model");
  table.integer({"micro-batch-size"}, &o.micro_batch_size, "sequences computed at a time",
                {.least = 1, .most = most_sequences});
  table.integer({"seq-length"}, &o.seq_length,
                "tokens of one sequence; 0: the model's most, up to 1024",
                {.least = 0, .most = most_tokens});
  declare_document_mask(table, o.document_mask);
  declare_dropout_option(table, o.dropout);
  table.flag({"print-program"}, &o.print_program,
             "print the grid of all ranks over time, and their step programs, action by action");
  table.real({"rank-flops"}, &o.rank_flops,
             "simulate the step: flops per second of one rank (see rankine bench); 0: do not",
             {.least = 0});
  table.bytes({"link-bandwidth"}, &o.link_bandwidth,
              "bytes per second that one rank sends, for the simulation");
  table.real({"memory-bandwidth"}, &o.memory_bandwidth,
             "bytes per second of the optimizer's streams, for the simulation; 0: as if it took no "
             "time",
             {.least = 0});
  table.bytes({"tier-bandwidth"}, &o.tier_bandwidth,
              "bytes per second copied from and to the tiers of --offload-parameters and "
              "--offload-activations, for the simulation; 0: as if it took no time");
  table.heading("Layout");
  declare_layout_options(table, o.parallel);
  table.heading("Machine");
  declare_machine_options(table, {&o.device, &o.threads, &o.instruction_set});
  return table;
}

// "7.5e9", "7.5B", "124 M": a whole number of parameters.
int64_t parse_parameters(std::string_view text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const auto& [name, factor] : {std::pair<std::string_view, double>{"", 1},
                                     {"K", 1e3},
                                     {"M", 1e6},
                                     {"B", 1e9},
                                     {"T", 1e12}})
    if (status == std::errc() && unit == name && value * factor >= 1 && value * factor <= 1e17)
      return std::llround(value * factor);
  fail(ErrorKind::usage,
       "--parameters '{}': not a number of parameters from 1 to 1e17; write for example 7.5e9, "
       "7.5B or 125M",
       text);
}

int64_t planned_parameters(const PlanOptions& o) {
  require(o.model.empty() != o.parameters.empty(), ErrorKind::usage,
          "give either --model NAME or --parameters COUNT{}", o.model.empty() ? "" : ", not both");
  return o.model.empty() ? parse_parameters(o.parameters)
                         : parameter_count(open_model(o.model).config);
}

// "31.4 GB": powers of 1000, as the ZeRO paper has them; three significant digits.
std::string decimal_bytes(uint64_t bytes) {
  double value = static_cast<double>(bytes);
  if (value < 1000) return fmt::format("{} B", bytes);
  size_t unit = 0;
  constexpr std::array units{"B", "KB", "MB", "GB", "TB", "PB", "EB"};
  for (; value >= 999.5 && unit + 1 < units.size(); ++unit) value /= 1000;
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, units[unit]);
}

// The model states of one rank at one ZeRO stage, and what they cost to keep in step.
struct StagePlan {
  int64_t stage;
  ModelStates states;
  Traffic traffic;
};

std::vector<StagePlan> stage_plans(int64_t parameters, const PlanOptions& o,
                                   const StateWidths& widths) {
  std::vector<StagePlan> plans;
  for (const ModelStates& states : zero_table(parameters, o.data_degree(), widths)) {
    const auto stage = static_cast<int64_t>(plans.size());
    plans.push_back(
        {stage, states,
         data_parallel_traffic(parameters, o.data_degree(), zero_stage(stage), o.accumulation)});
  }
  return plans;
}

void print_model_states(int64_t parameters, const PlanOptions& o, const StateWidths& widths,
                        const std::vector<StagePlan>& plans) {
  fmt::print(
      "parameters     {} ({})\ndata parallel  {}, accumulation {}\n"
      "bytes each     parameter {}, gradient {}, optimizer states {}{}\n\n",
      format_count(static_cast<double>(parameters)), parameters, o.data_degree(), o.accumulation,
      widths.parameter, widths.gradient, widths.optimizer,
      o.precision ? "" : " (mixed-precision Adam as the ZeRO paper counts it)");
  fmt::print("model states of one rank\n{:>4} {:>12} {:>12} {:>12} {:>12} {:>12} {:>15}\n", "ZeRO",
             "parameters", "gradients", "optimizer", "total", "reduction", "sent per step");
  for (const StagePlan& plan : plans) {
    const double factor =
        static_cast<double>(plans[0].states.total()) / static_cast<double>(plan.states.total());
    fmt::print("{:>4} {:>12} {:>12} {:>12} {:>12} {:>11.2f}x {:>15}\n", plan.stage,
               decimal_bytes(plan.states.parameter_bytes),
               decimal_bytes(plan.states.gradient_bytes),
               decimal_bytes(plan.states.optimizer_bytes), decimal_bytes(plan.states.total()),
               factor, format_count(plan.traffic.total()));
  }
  fmt::print(
      "\nOptimizer states are {:.3g} % of the {} unsharded. \"sent per step\" counts the elements "
      "of\ngradients and parameters that one rank sends for data parallelism.\n",
      100 * optimizer_share(widths), decimal_bytes(plans[0].states.total()));
}

Json model_states_json(int64_t parameters, const PlanOptions& o, const StateWidths& widths,
                       const std::vector<StagePlan>& plans) {
  Json json;
  json[report_key] = report_program;
  json["parameters"] = parameters;
  json["data_parallel"] = o.data_degree();
  json["accumulation"] = o.accumulation;
  json["bytes_per_parameter"] = {{"parameter", widths.parameter},
                                 {"gradient", widths.gradient},
                                 {"optimizer", widths.optimizer}};
  for (const StagePlan& plan : plans)
    json["zero"].push_back({{"stage", plan.stage},
                            {"parameter_bytes", plan.states.parameter_bytes},
                            {"gradient_bytes", plan.states.gradient_bytes},
                            {"optimizer_bytes", plan.states.optimizer_bytes},
                            {"total_bytes", plan.states.total()},
                            {"gradient_elements_sent", plan.traffic.gradients},
                            {"parameter_elements_sent", plan.traffic.parameters}});
  json["optimizer_share"] = optimizer_share(widths);
  return json;
}

// All ranks up to their plans: what `rankine train` would reserve and run.
PlannedLayout planned_layout(const PlanOptions& o, const ModelConfig& config, Ops& ops,
                             int64_t zero) {
  const int64_t tokens =
      o.seq_length > 0 ? o.seq_length : std::min<int64_t>(config.positions, 1024);
  require(tokens <= config.positions, ErrorKind::usage,
          "--seq-length {} exceeds the model's {} positions", tokens, config.positions);
  LayoutRequest request{o.parallel,
                        o.mesh(),
                        static_cast<int>(o.accumulation),
                        config,
                        {.shape = {o.micro_batch_size, tokens},
                         .compute = o.precision.value_or(DType::bf16),
                         .purpose = Purpose::training,
                         .positions = tokens,
                         .document_mask = o.document_mask}};
  request.options.zero = zero;
  return {request, ops};
}

// Plays the step programs of all ranks against the given rates.
void simulate_step(const PlanOptions& o, const PlannedLayout& layout, Json& json) {
  const int world = layout.shape().world();
  require(o.link_bandwidth > 0 || world == 1, ErrorKind::usage,
          "--rank-flops simulates {} ranks and needs their --link-bandwidth too", world);
  const Engine& engine = layout.of_rank(0);
  const CostTable costs = step_costs(
      layout.blocks(),
      {.rates = {.flops = o.rank_flops,
                 .bytes_sent = static_cast<double>(std::max<uint64_t>(1, o.link_bandwidth)),
                 .memory_bytes = o.memory_bandwidth,
                 .tier_bytes = static_cast<double>(o.tier_bandwidth)},
       .data_degree = static_cast<int>(o.data_degree()),
       .tensor_degree = static_cast<int>(o.parallel.tensor_parallel),
       .compute = engine.setup().compute,
       .zero = engine.store().setup().zero,
       .delayed_update = o.parallel.delayed_update > 0});
  const Simulation simulation = simulate(layout.programs(), costs);
  const double tokens = static_cast<double>(engine.setup().shape.rows() * o.accumulation) *
                        static_cast<double>(o.data_degree());
  fmt::print(
      "\nsimulated step {}, {:.0f} tokens/s; {:.0f} % of the first rank's communication hidden, "
      "ranks compute {:.0f} % of the time\n",
      format_seconds(simulation.seconds), tokens / simulation.seconds, 100 * simulation.overlap(0),
      100 * (1 - simulation.bubble()));
  json["simulation"] = {{"seconds", simulation.seconds},
                        {"overlap", simulation.overlap(0)},
                        {"bubble", simulation.bubble()},
                        {"activation_peak_bytes", simulation.ranks[0].peak_bytes}};
}

uint64_t state_bytes(const MemoryPlan& plan) {
  uint64_t states = 0;
  for (const PlanLine& line : summary(plan, Tier::device))
    for (const char* state : {"parameters", "master weights", "gradients", "optimizer states"})
      states += line.category == state ? line.bytes : 0;
  return states;
}

// The pipeline rank whose plan needs most.
const Engine& fullest(const PlannedLayout& layout) {
  const Engine* most = &layout.of_stage_rank(0);
  for (int p = 1; p < layout.shape().degree_of(Axis::pipeline); ++p)
    if (layout.of_stage_rank(p).plan().peak_bytes(Tier::device) >
        most->plan().peak_bytes(Tier::device))
      most = &layout.of_stage_rank(p);
  return *most;
}

void print_stages(const PlannedLayout& layout, Json& json) {
  const int ranks = layout.shape().degree_of(Axis::pipeline);
  if (ranks > 1)
    fmt::print("\npipeline\n{:>4} {:>12} {:>12} {:>12}  {}\n", "rank", "states", "residual",
               "total", "computes");
  for (int p = 0; p < ranks; ++p) {
    const Engine& engine = layout.of_stage_rank(p);
    const uint64_t total = engine.plan().peak_bytes(Tier::device);
    const uint64_t states = state_bytes(engine.plan());
    if (ranks > 1)
      fmt::print("{:>4} {:>12} {:>12} {:>12}  {}\n", p, format_bytes(states),
                 format_bytes(total - states), format_bytes(total), blocks_text(engine));
    json["pipeline"].push_back({{"planned_bytes", total},
                                {"state_bytes", states},
                                {"blocks", blocks_text(engine)},
                                {"program", to_string(engine.step_plan().program)}});
  }
}

void print_programs(const PlannedLayout& layout) {
  fmt::print("\ngrid of the pipeline's ranks over time\n{}", to_grid(layout.schedule()));
  for (int p = 0; p < layout.shape().degree_of(Axis::pipeline); ++p)
    fmt::print("\nstep program of pipeline rank {}\n{}\n", p,
               to_string(layout.of_stage_rank(p).step_plan().program));
}

// Model states and residual states of every stage, as training reserves them, and one in detail.
void plan_memory(const PlanOptions& o, Json& json) {
  ModelConfig config = open_model(o.model).config;
  config.dropout = o.dropout;
  const auto ops = make_backend({o.device, threads_of_first_rank(o.threads, o.mesh().world()),
                                 o.instruction_set})
                       .ops;
  fmt::print(
      "\nmemory of {} in {}, micro-batch {}, {} thread{}: model states and residual states\n",
      o.parallel.pipeline_parallel > 1 ? "the fullest rank" : "one rank",
      dtype_name(o.precision.value_or(DType::bf16)), o.micro_batch_size, ops->threads(),
      ops->threads() == 1 ? "" : "s");
  json["memory"]["threads"] = ops->threads();
  for (int64_t zero = 0; zero <= 3; ++zero) {
    const PlannedLayout layout = planned_layout(o, config, *ops, zero);
    const MemoryPlan& plan = fullest(layout).plan();
    const uint64_t states = state_bytes(plan), total = plan.peak_bytes(Tier::device);
    fmt::print("{:>4} {:>12} + {:>12} = {:>12}\n", zero, format_bytes(states),
               format_bytes(total - states), format_bytes(total));
    json["zero"][static_cast<size_t>(zero)]["residual_bytes"] = total - states;
    json["zero"][static_cast<size_t>(zero)]["planned_bytes"] = total;
  }
  const PlannedLayout layout = planned_layout(o, config, *ops, o.parallel.zero);
  const MemoryPlan& plan = fullest(layout).plan();
  json["memory"]["stage"] = o.parallel.zero;
  for (const PlanLine& line : summary(plan, Tier::device))
    json["memory"]["bytes"][line.category] = line.bytes;
  json["program"] = to_string(layout.of_rank(0).step_plan().program);
  fmt::print("\nstage {} in detail\n{}", o.parallel.zero, memory_table(plan));
  print_stages(layout, json);
  fmt::print("\nmemory over one step of {}\n{}",
             o.parallel.pipeline_parallel > 1 ? "the fullest rank" : "one rank",
             memory_picture(fullest(layout)));
  json["memory"]["over_step"] = memory_over_step(fullest(layout));
  if (o.rank_flops > 0) simulate_step(o, layout, json);
  if (o.print_program) print_programs(layout);
}

// A number of parameters alone has no blocks, no activations and no step.
void refuse_idle(const PlanOptions& o, const OptionTable& table) {
  constexpr std::array of_a_number{"parameters", "accumulation", "precision", "json",
                                   "data-parallel"};
  std::vector<std::string_view> of_a_model;
  for (const Option& option : table.options())
    if (std::ranges::find(of_a_number, option.names[0]) == of_a_number.end())
      of_a_model.emplace_back(option.names[0]);
  if (o.model.empty())
    refuse_without_effect(table, of_a_model,
                          "without a --model: a number of parameters has no blocks");
  if (o.rank_flops == 0)
    refuse_without_effect(table, {"link-bandwidth", "memory-bandwidth", "tier-bandwidth"},
                          "without --rank-flops, which asks for the simulation");
  if (o.parallel.offload_parameters == Offload::none &&
      o.parallel.offload_activations == Offload::none)
    refuse_without_effect(table, {"tier-bandwidth"},
                          "without --offload-parameters or --offload-activations");
}

}  // namespace

int run_plan(const CommandArguments& arguments) {
  PlanOptions o;
  OptionTable table = declare(o);
  if (parse_options(table, arguments).help) {
    fmt::print("{}", help_text(table, "rankine plan",
                               "Says what a layout needs before anything is started."));
    return 0;
  }
  require(o.parallel.data_parallel > 0, ErrorKind::usage,
          "--data-parallel 0: a plan is for a stated number of ranks, 1 or more");
  require_replaceable(o.json, "json", is_own_report);
  const int64_t parameters = planned_parameters(o);
  refuse_idle(o, table);
  const StateWidths widths = o.precision ? state_widths(*o.precision) : StateWidths{};
  const std::vector<StagePlan> plans = stage_plans(parameters, o, widths);
  print_model_states(parameters, o, widths, plans);
  Json json = model_states_json(parameters, o, widths, plans);
  if (!o.model.empty()) plan_memory(o, json);
  if (!o.json.empty()) write_text_atomically(o.json, json.dump(2) + "\n");
  return 0;
}

}  // namespace rankine

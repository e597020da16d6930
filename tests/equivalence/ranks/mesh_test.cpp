#include <gtest/gtest.h>

#include <algorithm>

#include "support/parallel_training.h"

// Every mesh trains as one rank does, with every schedule and ZeRO stage.
namespace rankine::test {
namespace {

// Heads, feed-forward size and rows that 4 tensor ranks divide; a vocabulary and a number of layers
// that nothing divides.
ModelConfig divisible(ModelConfig config) {
  config.heads = 4;
  config.kv_heads = config.kv_heads == 3 ? 4 : config.kv_heads;
  config.layers = 5;
  config.dropout = 0;
  return config;
}

ModelConfig model_named(const std::string& name) {
  for (const TinyModel& model : tiny_models())
    if (model.name == name) return divisible(model.config);
  throw std::out_of_range(name);
}

struct Case {
  std::string name;
  std::string model;
  DType compute = DType::f32;
  Layout layout;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name << ": " << c.model << ", " << to_string(c.layout);
}

Workload workload_of(const Case& c) {
  return {.config = model_named(c.model),
          .shape = {1, 12},
          .micros = 8,
          .compute = c.compute,
          .optimizer = {.epsilon = 1e-3, .clip_grad = 0.5}};
}

// References are the same for many cases.
const Outcome& reference_of(const Workload& work, const std::string& model, bool strict) {
  static std::map<std::string, Outcome> known;
  const std::string key =
      fmt::format("{} {} {} {}", model, dtype_name(work.compute), work.micros, strict);
  if (!known.contains(key)) known[key] = train_as_threads(work, {.strict = strict});
  return known[key];
}

class MeshTraining : public ::testing::TestWithParam<Case> {};

TEST_P(MeshTraining, IsThatOfOneRank) {
  const Case& c = GetParam();
  const Workload work = workload_of(c);
  const Outcome& reference = reference_of(work, c.model, c.layout.strict);
  const Outcome out = train_as_threads(work, c.layout);
  if (c.layout.strict && c.layout.tensor == 1) {
    EXPECT_EQ(out.losses, reference.losses);
    EXPECT_EQ(out.norms, reference.norms);
    EXPECT_EQ(out.weights, reference.weights);
    return;
  }
  // Tensor ranks round partial sums of activations: in bf16 once more per layer.
  const bool rounds = c.compute != DType::f32 && c.layout.tensor > 1;
  expect_close(out, reference, rounds ? 5e-3 : 5e-5);
}

constexpr ScheduleKind all_schedules[] = {
    ScheduleKind::gpipe, ScheduleKind::one_forward_one_backward, ScheduleKind::interleaved,
    ScheduleKind::zero_bubble, ScheduleKind::zb_v};

std::string case_name(const Case& c) {
  std::string schedule = schedule_name(c.layout.schedule);
  std::ranges::replace(schedule, '-', '_');
  return fmt::format("{}_{}_d{}t{}p{}_{}_z{}{}{}", c.model, dtype_name(c.compute), c.layout.data,
                     c.layout.tensor, c.layout.pipeline, schedule, c.layout.zero,
                     c.layout.sequence ? "_sp" : "", c.layout.strict ? "_strict" : "");
}

// All meshes of up to 8 ranks x stages x schedules x sequence parallelism.
std::vector<Case> all_cases(DType compute, bool strict) {
  std::vector<Case> out;
  for (const char* model : {"gpt2", "llama", "qwen3_dropout"})
    for (const int data : {1, 2, 4, 8})
      for (const int tensor : {1, 2, 4})
        for (const int pipeline : {1, 2, 3, 4}) {
          if (data * tensor * pipeline > 8 || data * tensor * pipeline == 1) continue;
          for (int zero = 0; zero <= 3; ++zero)
            for (const ScheduleKind schedule : all_schedules)
              for (const bool sequence : {false, true}) {
                if (pipeline == 1 && schedule != ScheduleKind::one_forward_one_backward) continue;
                if (data == 1 && zero > 0) continue;
                if (sequence && tensor == 1) continue;
                if (strict && tensor > 1) continue;
                // 5 layers are 2 stages on each of up to 3 ranks.
                const bool twice =
                    schedule == ScheduleKind::interleaved || schedule == ScheduleKind::zb_v;
                if (twice && pipeline > 3) continue;
                Case c{.name = "", .model = model, .compute = compute, .layout = {}};
                c.layout = {.data = data,
                            .zero = zero,
                            .strict = strict,
                            .bucket_bytes = 0,
                            .tensor = tensor,
                            .pipeline = pipeline,
                            .sequence = sequence,
                            .schedule = schedule,
                            .virtual_stages = schedule == ScheduleKind::interleaved ? 2 : 1,
                            .gather_window = 2,
                            .stage_layers = {}};
                c.name = case_name(c);
                out.push_back(c);
              }
        }
  return out;
}

// Every k-th case: a slice through all combinations.
std::vector<Case> slice(const std::vector<Case>& cases, size_t every, size_t first = 0) {
  std::vector<Case> out;
  for (size_t i = first; i < cases.size(); i += every) out.push_back(cases[i]);
  return out;
}

const auto name_of = [](const ::testing::TestParamInfo<Case>& info) { return info.param.name; };

INSTANTIATE_TEST_SUITE_P(F32, MeshTraining,
                         ::testing::ValuesIn(slice(all_cases(DType::f32, false), 7)), name_of);
INSTANTIATE_TEST_SUITE_P(Bf16, MeshTraining,
                         ::testing::ValuesIn(slice(all_cases(DType::bf16, false), 41, 3)), name_of);
INSTANTIATE_TEST_SUITE_P(Strict, MeshTraining,
                         ::testing::ValuesIn(slice(all_cases(DType::f32, true), 9, 2)), name_of);

}  // namespace
}  // namespace rankine::test

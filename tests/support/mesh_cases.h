#pragma once
#include <gtest/gtest.h>

#include <algorithm>

#include "support/parallel_training.h"

// The table of layouts that must train as one rank does: all meshes of up to 8 ranks x ZeRO stages
// x schedules x sequence parallelism, and what else a layout can choose.
namespace rankine::test {

struct MeshCase {
  std::string model;
  DType compute = DType::f32;
  Layout layout;
  int micros = 8;  // of all ranks
  bool dropout = false;

  std::string name() const {
    std::string schedule = schedule_name(layout.schedule), layers;
    std::ranges::replace(schedule, '-', '_');
    for (const int64_t count : layout.stage_layers)
      layers += (layers.empty() ? "_layers" : "_") + std::to_string(count);
    const auto unless = [](int64_t value, int64_t usual, const char* what) {
      return value == usual ? "" : fmt::format("_{}{}", what, value);
    };
    return fmt::format("{}_{}_d{}t{}p{}_{}_z{}{}{}{}{}{}{}{}", model, dtype_name(compute),
                       layout.data, layout.tensor, layout.pipeline, schedule, layout.zero,
                       layout.sequence ? "_sp" : "", layout.strict ? "_strict" : "",
                       dropout ? "_dropout" : "", layers, unless(micros, 8, "micros"),
                       unless(layout.gather_window, 2, "window"),
                       unless(layout.bucket_bytes, 0, "bucket"));
  }
};

inline void PrintTo(const MeshCase& c, std::ostream* out) {
  *out << c.name();
}

// Heads, feed-forward size and rows that 4 tensor ranks divide; a vocabulary and a number of layers
// that nothing divides.
inline ModelConfig divisible(ModelConfig config, bool dropout) {
  config.heads = 4;
  config.kv_heads = config.kv_heads == 3 ? 4 : config.kv_heads;
  config.layers = 5;
  if (!dropout) config.dropout = 0;
  return config;
}

inline Workload workload_of(const MeshCase& c) {
  const std::vector<TinyModel> models = tiny_models();
  const auto found = std::ranges::find(models, c.model, &TinyModel::name);
  return {.config = divisible(found->config, c.dropout),
          .shape = {1, 12},
          .micros = c.micros,
          .compute = c.compute,
          // A key bias has gradient 0 but for rounding, which a small epsilon would blow up.
          .optimizer = {.epsilon = 1e-3, .clip_grad = 0.5}};
}

// One rank, or with strict sums the same tensor ranks alone; the same for many cases.
inline const Outcome& reference_of(const MeshCase& c) {
  static std::map<std::string, Outcome> known;
  Layout layout;
  if (c.layout.strict)
    layout = {.strict = true, .tensor = c.layout.tensor, .sequence = c.layout.sequence};
  const std::string key = MeshCase{c.model, c.compute, layout, c.micros, c.dropout}.name();
  if (!known.contains(key)) known[key] = train_as_threads(workload_of(c), layout);
  return known[key];
}

inline void expect_trains_as_one_rank(const MeshCase& c) {
  SCOPED_TRACE(c.name());
  const Outcome& reference = reference_of(c);
  const Outcome out = train_as_threads(workload_of(c), c.layout);
  if (c.layout.strict) {
    EXPECT_EQ(out.losses, reference.losses);
    EXPECT_EQ(out.norms, reference.norms);
    EXPECT_EQ(out.weights, reference.weights);
    return;
  }
  // Tensor ranks round partial sums of activations: in bf16 once more per layer.
  const bool rounds = c.compute != DType::f32 && c.layout.tensor > 1;
  expect_close(out, reference, rounds ? 5e-3 : 5e-5);
}

inline constexpr ScheduleKind all_schedules[] = {
    ScheduleKind::gpipe, ScheduleKind::one_forward_one_backward, ScheduleKind::interleaved,
    ScheduleKind::zero_bubble, ScheduleKind::zb_v};

inline bool holds_two_stages(ScheduleKind schedule) {
  return schedule == ScheduleKind::interleaved || schedule == ScheduleKind::zb_v;
}

inline Layout scheduled(Layout layout, ScheduleKind schedule) {
  layout.schedule = schedule;
  layout.virtual_stages = schedule == ScheduleKind::interleaved ? 2 : 1;
  return layout;
}

// Everything that is done on one mesh of one model.
inline std::vector<MeshCase> cases_of_mesh(const std::string& model, DType compute, bool strict,
                                           const Layout& mesh) {
  std::vector<MeshCase> out;
  for (int zero = 0; zero <= (mesh.data > 1 ? 3 : 0); ++zero)
    for (const ScheduleKind schedule : all_schedules)
      for (const bool sequence : {false, true}) {
        if (mesh.pipeline == 1 && schedule != ScheduleKind::one_forward_one_backward) continue;
        if (sequence && mesh.tensor == 1) continue;
        // 5 layers are 2 stages on each of up to 3 ranks.
        if (holds_two_stages(schedule) && mesh.pipeline > 3) continue;
        Layout layout = scheduled(mesh, schedule);
        layout.zero = zero;
        layout.strict = strict;
        layout.sequence = sequence;
        out.push_back({.model = model, .compute = compute, .layout = layout});
      }
  return out;
}

inline std::vector<Layout> meshes_up_to(int ranks) {
  std::vector<Layout> out;
  for (const int data : {1, 2, 4, 8})
    for (const int tensor : {1, 2, 4})
      for (const int pipeline : {1, 2, 3, 4})
        if (const int world = data * tensor * pipeline; world > 1 && world <= ranks)
          out.push_back({.data = data, .tensor = tensor, .pipeline = pipeline});
  return out;
}

inline std::vector<MeshCase> all_cases(DType compute, bool strict) {
  std::vector<MeshCase> out;
  for (const char* model : {"gpt2", "llama", "qwen3_dropout"})
    for (const Layout& mesh : meshes_up_to(8))
      std::ranges::copy(cases_of_mesh(model, compute, strict, mesh), std::back_inserter(out));
  return out;
}

// ---- what else a layout can choose, one thing at a time

inline std::vector<MeshCase> uneven_stages() {
  struct Cut {
    int pipeline;
    ScheduleKind schedule;
    std::vector<int64_t> layers;
  };
  using enum ScheduleKind;
  std::vector<MeshCase> out;
  for (const char* model : {"gpt2", "llama"})
    for (const Cut& cut : std::vector<Cut>{{2, one_forward_one_backward, {4, 1}},
                                           {2, gpipe, {0, 5}},
                                           {2, zero_bubble, {5, 0}},
                                           {2, interleaved, {0, 3, 2, 0}},
                                           {2, zb_v, {2, 1, 1, 1}},
                                           {3, one_forward_one_backward, {1, 3, 1}},
                                           {4, zero_bubble, {2, 1, 2, 0}}})
      for (const int zero : {0, 1, 2, 3}) {
        Layout layout{
            .data = 2, .zero = zero, .pipeline = cut.pipeline, .stage_layers = cut.layers};
        out.push_back({.model = model, .layout = scheduled(layout, cut.schedule)});
      }
  return out;
}

inline std::vector<MeshCase> windows_and_buckets() {
  std::vector<MeshCase> out;
  for (const char* model : {"gpt2", "llama"})
    for (const int pipeline : {1, 2})
      for (const ScheduleKind schedule : all_schedules) {
        if (pipeline == 1 && schedule != ScheduleKind::one_forward_one_backward) continue;
        for (const int window : {1, 8})
          out.push_back({.model = model,
                         .layout = scheduled(
                             {.data = 2, .zero = 3, .pipeline = pipeline, .gather_window = window},
                             schedule)});
        // Some blocks' gradients, and more than there are.
        for (const int64_t bucket : {30'000, 10'000'000})
          for (int zero = 0; zero <= 3; ++zero)
            out.push_back(
                {.model = model,
                 .layout = scheduled(
                     {.data = 2, .zero = zero, .bucket_bytes = bucket, .pipeline = pipeline},
                     schedule)});
      }
  return out;
}

// Fewer micro-batches than pipeline ranks, and numbers that these do not divide.
inline std::vector<MeshCase> odd_micro_batches() {
  std::vector<MeshCase> out;
  for (const bool strict : {false, true})
    for (const int micros : {1, 3, 5})
      for (const int pipeline : {2, 3, 4})
        for (const ScheduleKind schedule : all_schedules)
          for (const int data : {1, 2})
            for (const int zero : {0, 2, 3}) {
              if (holds_two_stages(schedule) && pipeline > 3) continue;
              if (data == 1 && zero > 0) continue;
              out.push_back(
                  {.model = "gpt2",
                   .layout = scheduled(
                       {.data = data, .zero = zero, .strict = strict, .pipeline = pipeline},
                       schedule),
                   .micros = micros * data});
            }
  return out;
}

// Neighbouring tensor ranks that hold the same key/value heads.
inline std::vector<MeshCase> shared_heads() {
  std::vector<MeshCase> out;
  for (const DType compute : {DType::f32, DType::bf16})
    for (const auto& [model, tensor] :
         {std::pair{"llama", 4}, {"qwen2", 4}, {"mistral", 2}, {"mistral", 4}})
      for (const bool sequence : {false, true})
        for (const int other : {1, 2})
          for (int zero = 0; zero <= (other > 1 ? 3 : 0); ++zero)
            for (const bool pipelined : {false, true}) {
              if (pipelined && (other == 1 || zero > 0)) continue;
              out.push_back({.model = model,
                             .compute = compute,
                             .layout = {.data = pipelined ? 1 : other,
                                        .zero = zero,
                                        .tensor = tensor,
                                        .pipeline = pipelined ? other : 1,
                                        .sequence = sequence}});
            }
  return out;
}

// Masks are the same whoever draws them.
inline std::vector<MeshCase> dropped_out() {
  std::vector<MeshCase> out;
  for (const char* model : {"qwen3_dropout", "gpt2_exact_gelu_dropout"}) {
    const auto add = [&](const Layout& layout, DType compute = DType::f32) {
      out.push_back({.model = model, .compute = compute, .layout = layout, .dropout = true});
    };
    for (const int tensor : {2, 4})
      for (const bool sequence : {false, true}) add({.tensor = tensor, .sequence = sequence});
    for (const ScheduleKind schedule : all_schedules)
      for (const bool strict : {false, true}) {
        add(scheduled({.strict = strict, .pipeline = 3}, schedule));
        add(scheduled({.data = 2, .zero = 3, .strict = strict, .pipeline = 2}, schedule));
      }
    for (const ScheduleKind schedule : all_schedules)
      add(scheduled({.data = 2, .zero = 2, .tensor = 2, .pipeline = 2, .sequence = true},
                    schedule));
    for (int zero = 0; zero <= 3; ++zero) add({.data = 4, .zero = zero}, DType::bf16);
    add({.tensor = 2, .sequence = true}, DType::bf16);
  }
  return out;
}

inline std::vector<MeshCase> further_cases() {
  std::vector<MeshCase> out;
  for (const auto& cases :
       {uneven_stages(), windows_and_buckets(), odd_micro_batches(), shared_heads(), dropped_out()})
    std::ranges::copy(cases, std::back_inserter(out));
  return out;
}

// Every k-th case: a slice through all combinations.
inline std::vector<MeshCase> slice(const std::vector<MeshCase>& cases, size_t every,
                                   size_t first = 0) {
  std::vector<MeshCase> out;
  for (size_t i = first; i < cases.size(); i += every) out.push_back(cases[i]);
  return out;
}

}  // namespace rankine::test

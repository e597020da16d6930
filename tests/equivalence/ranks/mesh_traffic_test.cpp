#include <gtest/gtest.h>

#include "support/parallel_training.h"

// What a rank sends along the tensor axis and the pipeline is what their formulas say, to the byte.
namespace rankine::test {
namespace {

constexpr int64_t rows = 192, hidden = 128, layers = 2, head_dim = 32;

// Activations of more than 32 KiB in either dtype, below which sums go another way.
ModelConfig wide(const TinyModel& tiny, int64_t kv_heads) {
  ModelConfig config = tiny.config;
  config.hidden = hidden;
  config.layers = layers;
  config.heads = 4;
  config.kv_heads = kv_heads;
  config.head_dim = head_dim;
  config.feed_forward = 64;
  config.positions = rows;
  config.dropout = 0;
  return config;
}

struct Model {
  const char* name;
  ModelConfig config;
};

std::vector<Model> models() {
  const std::vector<TinyModel> tiny = tiny_models();
  return {{"gpt2", wide(tiny[0], 4)},
          {"llama", wide(tiny[2], 4)},
          {"llama with one key/value head", wide(tiny[2], 1)},
          {"qwen3", wide(tiny[4], 4)}};
}

// What one of n ranks sends to sum so many bytes of all of them.
int64_t all_reduce_bytes(int64_t bytes, int64_t n) {
  return bytes > (32 << 10) ? 2 * bytes / n * (n - 1) : bytes * (n - 1);
}

// Gradients that tensor ranks have parts of, f32, per reduction of all blocks.
int64_t partial_gradient_bytes(const ModelConfig& c, int64_t ranks, bool sequence) {
  const int64_t norm = 4 * hidden * (c.norm == NormKind::layer ? 2 : 1);
  // Each norm over the heads fills 64 elements of its own.
  const int64_t heads = c.qk_norm ? 2 * 4 * 64 : 0;
  int64_t sent = layers * all_reduce_bytes((sequence ? 2 * norm : 0) + heads, ranks);
  if (sequence) sent += all_reduce_bytes(norm, ranks);  // the head's
  if (const int64_t replicas = ranks / c.kv_heads; replicas > 1)
    sent += layers * all_reduce_bytes(4 * 2 * head_dim * hidden, replicas);
  return sent;
}

// Per micro-batch, with a = (T - 1) / T of the activations of all rows, which a rank sends in one
// reduce_scatter or all_gather; an all_reduce is both:
//   a layer     2 all_reduces forward, 2 backward: 8 a; with sequence parallelism 2 all_gathers and
//               2 reduce_scatters forward, the same backward, and 2 all_gathers that make the
//               norms' outputs again: 10 a
//   embedding   1 all_reduce forward: 2 a; or a reduce_scatter, and an all_gather backward: 2 a
//   head        1 all_reduce of the input's gradient: 2 a; or all_gather and reduce_scatter: 2 a;
//               and everyone's 3 numbers (f64) of each row to all
int64_t tensor_bytes(const ModelConfig& c, const Layout& layout, DType compute, int micros) {
  const int64_t ranks = layout.tensor;
  const int64_t a = rows * hidden * dtype_bytes(compute) / ranks * (ranks - 1);
  const int64_t activations = a * ((layout.sequence ? 10 : 8) * layers + 4);
  const int64_t statistics = (ranks - 1) * rows * 3 * 8;
  const int64_t reductions = layout.zero >= 2 ? micros : 1;
  return micros * (activations + statistics) +
         reductions * partial_gradient_bytes(c, ranks, layout.sequence);
}

TEST(Traffic, TensorRanksSendWhatTheFormulaSays) {
  for (const Model& model : models())
    for (const DType compute : {DType::f32, DType::bf16})
      for (const int tensor : {2, 4})
        for (const bool sequence : {false, true})
          for (const int micros : {1, 3}) {
            const Layout layout{.tensor = tensor, .sequence = sequence};
            SCOPED_TRACE(fmt::format("{}, {}, {}, {} micro-batches", model.name,
                                     dtype_name(compute), to_string(layout), micros));
            const Outcome out = train_as_threads({.config = model.config,
                                                  .shape = {1, rows},
                                                  .micros = micros,
                                                  .compute = compute,
                                                  .steps = 2},
                                                 layout);
            for (const AxisTraffic& rank : out.traffic) {
              EXPECT_EQ(static_cast<int64_t>(rank.tensor.bytes_sent),
                        tensor_bytes(model.config, layout, compute, micros));
              EXPECT_EQ(rank.data.bytes_sent + rank.pipeline.bytes_sent, 0u);
            }
          }
}

TEST(Traffic, GradientsOfEveryMicroBatchAreJoinedOverTensorRanksEachTime) {
  for (const bool sequence : {false, true}) {
    const Layout layout{.data = 2, .zero = 2, .tensor = 2, .sequence = sequence};
    const ModelConfig config = models()[3].config;
    const Outcome out =
        train_as_threads({.config = config, .shape = {1, rows}, .micros = 6, .steps = 1}, layout);
    for (const AxisTraffic& rank : out.traffic)
      EXPECT_EQ(static_cast<int64_t>(rank.tensor.bytes_sent),
                tensor_bytes(config, layout, DType::f32, 3));
  }
}

// Each border between stages of different ranks: one activation forward, one gradient backward, for
// each micro-batch, of the rows that a rank has.
std::vector<int64_t> pipeline_bytes(const Layout& layout, DType compute, int micros) {
  const Schedule schedule = make_schedule(
      layout.schedule,
      {.ranks = layout.pipeline, .micros = micros, .virtual_stages = layout.virtual_stages});
  const int64_t own_rows = layout.sequence ? rows / layout.tensor : rows;
  const int64_t border = micros * own_rows * hidden * dtype_bytes(compute);
  std::vector<int64_t> sent(static_cast<size_t>(layout.pipeline));
  for (size_t stage = 0; stage + 1 < schedule.rank_of_stage.size(); ++stage) {
    const auto before = static_cast<size_t>(schedule.rank_of_stage[stage]);
    const auto behind = static_cast<size_t>(schedule.rank_of_stage[stage + 1]);
    if (before == behind) continue;
    sent[before] += border;
    sent[behind] += border;
  }
  return sent;
}

TEST(Traffic, PipelineRanksSendOneActivationPerBorderDirectionAndMicroBatch) {
  ModelConfig config = models()[0].config;
  config.layers = 6;
  for (const auto& [schedule, stages] : {std::pair{ScheduleKind::gpipe, 1},
                                         {ScheduleKind::one_forward_one_backward, 1},
                                         {ScheduleKind::interleaved, 2},
                                         {ScheduleKind::zero_bubble, 1},
                                         {ScheduleKind::zb_v, 1}})
    for (const DType compute : {DType::f32, DType::bf16})
      for (const int pipeline : {2, 3})
        for (const int tensor : {1, 2}) {
          const Layout layout{.tensor = tensor,
                              .pipeline = pipeline,
                              .sequence = tensor > 1,
                              .schedule = schedule,
                              .virtual_stages = stages};
          SCOPED_TRACE(fmt::format("{}, {}", dtype_name(compute), to_string(layout)));
          const Outcome out = train_as_threads(
              {.config = config, .shape = {1, rows}, .micros = 4, .compute = compute, .steps = 2},
              layout);
          const std::vector<int64_t> expected = pipeline_bytes(layout, compute, 4);
          // Known without the schedule: the ends of a straight pipeline have one border.
          if (stages == 1 && schedule != ScheduleKind::zb_v) {
            EXPECT_EQ(expected.front(), 4 * rows / tensor * hidden * dtype_bytes(compute));
          }
          const MeshShape shape = layout.mesh();
          for (int rank = 0; rank < shape.world(); ++rank) {
            const AxisTraffic& traffic = out.traffic[static_cast<size_t>(rank)];
            const auto at = static_cast<size_t>(shape.coordinate(rank)[0]);
            EXPECT_EQ(static_cast<int64_t>(traffic.pipeline.bytes_sent), expected[at])
                << "pipeline rank " << at;
            EXPECT_EQ(traffic.data.bytes_sent, 0u);
          }
        }
}

}  // namespace
}  // namespace rankine::test

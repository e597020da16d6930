#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/action.h"

// Pipeline parallelism: which rank computes which stage of which micro-batch in which order. A
// schedule is computations of whole stages alone; passes add everything else.
namespace rankine {

enum class ScheduleKind : uint8_t {
  gpipe,                     // all F, then all B (arXiv 1811.06965)
  one_forward_one_backward,  // "1f1b" (arXiv 2104.04473, section 2.2.1)
  interleaved,               // several stages per rank (arXiv 2104.04473, section 2.2.2)
  zero_bubble,               // B split into I and W, ZB-H1 (arXiv 2401.10241, section 2.2)
  zb_v                       // and two stages per rank in a V (arXiv 2401.10241, section 6)
};
// "gpipe", "1f1b", "interleaved", "zero-bubble", "zb-v", in the order of ScheduleKind.
std::vector<std::string> schedule_names();
std::string schedule_name(ScheduleKind kind);
// Error{usage} with the nearest name when it is none.
ScheduleKind parse_schedule_kind(std::string_view name);

struct PipelineShape {
  int ranks = 1, micros = 1;
  // Stages per rank: at least 2 with interleaved, 1 otherwise; zb_v always has 2, which 1 may stand
  // for.
  int virtual_stages = 1;
};

// Seconds of one stage, by which zb_v decides.
struct ComputationSeconds {
  double forward = 1, backward_input = 1, backward_weight = 1, transfer = 0;
};

struct Schedule {
  std::vector<Program> ranks;      // computations of whole stages, then one U
  std::vector<int> rank_of_stage;  // stages are numbered along the model
  bool operator==(const Schedule&) const = default;
};
// A schedule of one rank and one stage.
Schedule one_stage(Program program);
int micros_of(const Schedule& schedule);

// For any number of ranks and micro-batches. Stage s is on rank s % ranks, but in zb_v rank r holds
// stages r and 2 ranks - 1 - r. In flight on a rank, at most: gpipe all micro-batches; 1f1b
// ranks - rank; zero_bubble the same from F to I, and `ranks` from F to W; zb_v 2 ranks stages of
// half the size. The first stage's I and W are one B where nothing stands between them.
// Error{usage} where the shape does not fit the kind.
Schedule make_schedule(ScheduleKind kind, const PipelineShape& shape,
                       const ComputationSeconds& seconds = {});

// Where a schedule stands, for messages.
struct ScheduleSource {
  std::string name = "schedule";  // of a file: "'path'"
  std::vector<int> lines = {};    // of each rank, from 1; empty when it was not read
  // "'path', line 3, rank 1".
  std::string of_rank(size_t rank) const;
};

// One line per rank, "rank 0: 0F0 0F1 0B0 0B1 0U"; lines that are empty or begin with '#' are
// skipped. Error{usage} naming the source, line and word; `source.lines` are filled in.
std::string to_string(const Schedule& schedule);
Schedule parse_schedule(std::string_view text, ScheduleSource& source);
inline Schedule parse_schedule(std::string_view text) {
  ScheduleSource source;
  return parse_schedule(text, source);
}

// Throws Error{usage} naming source, rank and action unless every micro-batch passes every stage
// forwards and backwards once and all ranks reach their end, even when a send ends only with its
// receive.
void check(const Schedule& schedule, int micros, const ScheduleSource& source = {});

// A program of the given rank, of whole stages or of blocks, with its transfers: SEND_F right
// behind the F of a stage's last block and SEND_B behind the B or I of its first; RECV_F and RECV_B
// one computation of a whole stage before the one that consumes (prefetch), in order of consumption
// but never in another order than the schedule's peer sends them. Neighbouring stages of one rank
// exchange nothing.
Program add_transfers(const Program& program, const Schedule& schedule, int rank);

// For people: a row per rank, a column per unit of time, in which a transfer takes none, F, I and W
// one unit and B two: "F0 F1 B0 B0 . B1 B1"; stages are named ("2F0") where a rank has several.
// Error as check_completes.
std::string to_grid(const Schedule& schedule);

}  // namespace rankine

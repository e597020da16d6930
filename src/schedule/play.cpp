#include "schedule/play.h"

#include <algorithm>
#include <queue>

#include "base/error.h"
#include "schedule/meetings.h"
#include "schedule/waits.h"

namespace rankine {
namespace {

class Play {
 public:
  Play(const std::vector<RankProgram>& ranks,
       const std::function<double(int, const Action&)>& seconds)
      : ranks_(ranks), seconds_(seconds), meetings_(meetings(ranks)) {
    for (const Meeting& meeting : meetings_.all)
      progress_.push_back({.missing = meeting.sides.size()});
    for (const RankProgram& rank : ranks) {
      waits_.push_back(waits(rank.program, rank.blocks, rank.stays));
      times_.emplace_back(rank.program.size());
    }
    cursor_.resize(ranks.size());
    clock_.resize(ranks.size());
  }

  std::vector<std::vector<ActionTimes>> run() {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) ready_.push(rank);
    while (!ready_.empty()) {
      const size_t rank = ready_.front();
      ready_.pop();
      advance(rank);
    }
    for (size_t rank = 0; rank < ranks_.size(); ++rank)
      if (cursor_[rank] < ranks_[rank].program.size()) report_waiting(rank);
    return std::move(times_);
  }

 private:
  struct Progress {
    size_t missing = 0;  // sides that have not started it
    double start = 0, end = 0;
    bool ended = false;
  };

  double cost(size_t rank, const Action& action) const {
    const double seconds = seconds_(static_cast<int>(rank), action);
    expect(seconds >= 0, "costs are not negative");
    return seconds;
  }
  size_t meeting_of(size_t rank, size_t index) const {
    return static_cast<size_t>(meetings_.of[rank][index]);
  }
  // What keeps the rank from running its next action: the index of an earlier one, or none.
  int blocker(size_t rank) const {
    for (const int index : waits_[rank][cursor_[rank]])
      if (!progress_[meeting_of(rank, static_cast<size_t>(index))].ended) return index;
    return Action::none;
  }

  void advance(size_t rank) {
    const Program& program = ranks_[rank].program;
    for (size_t& at = cursor_[rank]; at < program.size(); ++at) {
      if (blocker(rank) != Action::none) return;
      for (const int index : waits_[rank][at])
        clock_[rank] =
            std::max(clock_[rank], progress_[meeting_of(rank, static_cast<size_t>(index))].end);
      ActionTimes& times = times_[rank][at];
      times.reached = times.start = times.end = clock_[rank];
      if (meetings_.of[rank][at] != Action::none) {
        const size_t meeting = meeting_of(rank, at);
        if (--progress_[meeting].missing == 0) finish(meetings_.all[meeting], progress_[meeting]);
      } else if (program[at].kind != ActionKind::release) {
        times.end = times.start + cost(rank, program[at]);
        clock_[rank] = times.end;
      }
    }
  }

  // All have started it, and so all those before it: a rank starts them in order.
  void finish(const Meeting& meeting, Progress& progress) {
    if (meeting.before != Action::none)
      progress.start = progress_[static_cast<size_t>(meeting.before)].end;
    double seconds = 0;
    for (const auto& [r, i] : meeting.sides) {
      const auto rank = static_cast<size_t>(r), at = static_cast<size_t>(i);
      progress.start = std::max(progress.start, times_[rank][at].reached);
      seconds = std::max(seconds, cost(rank, ranks_[rank].program[at]));
      ready_.push(rank);
    }
    progress.end = progress.start + seconds;
    progress.ended = true;
    for (const auto& [r, i] : meeting.sides) {
      ActionTimes& times = times_[static_cast<size_t>(r)][static_cast<size_t>(i)];
      times.start = progress.start;
      times.end = progress.end;
    }
  }

  std::string waiting(size_t rank) const {
    const int index = blocker(rank);
    const Action& awaited = ranks_[rank].program[static_cast<size_t>(index)];
    return fmt::format("{} waits for its action {} ({})", at_cursor(rank), index,
                       to_string(awaited));
  }
  std::string at_cursor(size_t rank) const {
    return describe(ranks_, {static_cast<int>(rank), static_cast<int>(cursor_[rank])});
  }

  [[noreturn]] void report_waiting(size_t rank) const {
    const size_t awaited = meeting_of(rank, static_cast<size_t>(blocker(rank)));
    const std::vector<Meeting::Side>& sides = meetings_.all[awaited].sides;
    const auto late = std::find_if(sides.begin(), sides.end(), [&](const Meeting::Side& side) {
      return cursor_[static_cast<size_t>(side.rank)] <= static_cast<size_t>(side.index);
    });
    expect(late != sides.end(), "what all have started ends");
    fail(ErrorKind::internal,
         "the programs never end: {}; that needs {}, which is never started because {}",
         waiting(rank), describe(ranks_, *late), waiting(static_cast<size_t>(late->rank)));
  }

  const std::vector<RankProgram>& ranks_;
  const std::function<double(int, const Action&)>& seconds_;
  Meetings meetings_;
  std::vector<Progress> progress_;  // of each meeting
  std::vector<std::vector<std::vector<int>>> waits_;
  std::vector<std::vector<ActionTimes>> times_;
  std::vector<size_t> cursor_;
  std::vector<double> clock_;
  std::queue<size_t> ready_;
};

}  // namespace

std::vector<std::vector<ActionTimes>> play(
    const std::vector<RankProgram>& ranks,
    const std::function<double(int rank, const Action&)>& seconds) {
  return Play(ranks, seconds).run();
}

void check_completes(const std::vector<RankProgram>& ranks) {
  play(ranks, [](int, const Action&) { return 0.0; });
}

}  // namespace rankine

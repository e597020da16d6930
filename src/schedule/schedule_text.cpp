#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "schedule/pipeline.h"
#include "schedule/play.h"

namespace rankine {
namespace {

constexpr std::string_view blanks = " \t\r";

std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(blanks));
  text.remove_prefix(word.size());
  return word;
}

class Parser {
 public:
  explicit Parser(ScheduleSource& source) : source_(source) { source_.lines.clear(); }

  Schedule parse(std::string_view text) {
    while (!text.empty()) {
      ++line_;
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      parse_line(line);
    }
    require(!out_.ranks.empty(), ErrorKind::usage,
            "{} has no rank; write a line like 'rank 0: 0F0 0B0 0U' for each", source_.name);
    for (const auto& [stage, rank] : ranks_) {
      require(stage == static_cast<int>(out_.rank_of_stage.size()), ErrorKind::usage,
              "{} computes stage {} but not stage {}; number stages from 0 without gaps",
              source_.of_rank(static_cast<size_t>(rank)), stage, out_.rank_of_stage.size());
      out_.rank_of_stage.push_back(rank);
    }
    return std::move(out_);
  }

 private:
  void demand(bool ok, std::string_view word, const std::string& why) const {
    require(ok, ErrorKind::usage, "{}, line {}: '{}' {}", source_.name, line_, word, why);
  }

  void parse_line(std::string_view line) {
    const std::string_view head = take_word(line);
    if (head.empty() || head.front() == '#') return;
    demand(head == "rank", head, "is where 'rank' must stand, as in 'rank 0: 0F0 0B0 0U'");
    const int rank = static_cast<int>(out_.ranks.size());
    const std::string_view number = take_word(line);
    demand(number == fmt::format("{}:", rank), number,
           fmt::format("is where '{}:' must stand; list ranks in order from 0", rank));
    Program program;
    for (std::string_view word = take_word(line); !word.empty(); word = take_word(line))
      program.push_back(parse_word(word, rank));
    out_.ranks.push_back(std::move(program));
    source_.lines.push_back(line_);
  }

  Action parse_word(std::string_view word, int rank) {
    Action action;
    try {
      action = parse_program(word).front();
    } catch (const Error& e) {
      fail(ErrorKind::usage, "{}, line {}: {}", source_.name, line_, e.what());
    }
    const bool listed = computes(action.kind) || action.kind == ActionKind::update;
    demand(listed && action.block == Action::none, word,
           "is added later; a schedule lists F, B, I, W of whole stages and U");
    if (!computes(action.kind)) return action;
    const int holder = ranks_.emplace(action.stage, rank).first->second;
    demand(holder == rank, word, fmt::format("is of a stage that rank {} computes too", holder));
    return action;
  }

  ScheduleSource& source_;
  int line_ = 0;
  std::map<int, int> ranks_;  // of each stage
  Schedule out_;
};

std::vector<RankProgram> with_transfers(const Schedule& schedule) {
  std::vector<RankProgram> out;
  for (int rank = 0; rank < static_cast<int>(schedule.ranks.size()); ++rank)
    out.push_back(
        {.place = {.pipeline = rank},
         .program = add_transfers(schedule.ranks[static_cast<size_t>(rank)], schedule, rank)});
  return out;
}

// Every stage is computed by its own rank alone.
void check_stages(const Schedule& schedule, const ScheduleSource& source) {
  std::set<int> computed;
  const int stages = static_cast<int>(schedule.rank_of_stage.size());
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const Program& program = schedule.ranks[rank];
    for (size_t i = 0; i < program.size(); ++i) {
      const int stage = program[i].stage;
      require(stage < stages, ErrorKind::usage, "{}: action {} ({}) is of stage {} of {}",
              source.of_rank(rank), i, to_string(program[i]), stage, stages);
      if (!computes(program[i].kind)) continue;
      const int holder = schedule.rank_of_stage[static_cast<size_t>(stage)];
      require(holder == static_cast<int>(rank), ErrorKind::usage,
              "{}: action {} ({}) is of a stage of rank {}", source.of_rank(rank), i,
              to_string(program[i]), holder);
      computed.insert(stage);
    }
  }
  for (int stage = 0; stage < stages; ++stage)
    require(computed.contains(stage), ErrorKind::usage, "{}: it never computes its stage {}",
            source.of_rank(static_cast<size_t>(schedule.rank_of_stage[static_cast<size_t>(stage)])),
            stage);
}

}  // namespace

std::string ScheduleSource::of_rank(size_t rank) const {
  const std::string line = rank < lines.size() ? fmt::format(", line {}", lines[rank]) : "";
  return fmt::format("{}{}, rank {}", name, line, rank);
}

std::string to_string(const Schedule& schedule) {
  std::string out;
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    out += fmt::format("rank {}: {}\n", rank, to_string(schedule.ranks[rank]));
  return out;
}

Schedule parse_schedule(std::string_view text, ScheduleSource& source) {
  return Parser(source).parse(text);
}

void check(const Schedule& schedule, int micros, const ScheduleSource& source) {
  check_stages(schedule, source);
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    try {
      check(schedule.ranks[rank], micros);
    } catch (const Error& e) {
      fail(ErrorKind::usage, "{}: {}", source.of_rank(rank), e.what());
    }
  }
  try {
    check_completes(with_transfers(schedule));
  } catch (const Error& e) {
    fail(ErrorKind::usage, "{}, numbers of actions with their transfers: {}", source.name,
         e.what());
  }
}

std::string to_grid(const Schedule& schedule) {
  const std::vector<RankProgram> ranks = with_transfers(schedule);
  const auto times = play(ranks, [](int, const Action& action) {
    if (!computes(action.kind)) return 0.0;
    return action.kind == ActionKind::backward ? 2.0 : 1.0;
  });
  const bool several = schedule.rank_of_stage.size() > schedule.ranks.size();
  std::vector<std::vector<std::string>> cells(ranks.size());
  size_t columns = 0, width = 1;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (size_t i = 0; i < ranks[rank].program.size(); ++i) {
      const Action& action = ranks[rank].program[i];
      if (!computes(action.kind)) continue;
      std::string cell = to_string(action);
      if (!several) cell.erase(0, std::to_string(action.stage).size());
      cells[rank].resize(static_cast<size_t>(times[rank][i].start), ".");
      cells[rank].resize(static_cast<size_t>(times[rank][i].end), cell);
      width = std::max(width, cell.size());
    }
    columns = std::max(columns, cells[rank].size());
  }
  const size_t digits = std::to_string(ranks.size() - 1).size();
  std::string out;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    cells[rank].resize(columns, ".");
    std::string row = fmt::format("rank {:>{}}:", rank, digits);
    for (const std::string& cell : cells[rank]) row += fmt::format(" {:<{}}", cell, width);
    row.erase(row.find_last_not_of(' ') + 1);
    out += row + "\n";
  }
  return out;
}

}  // namespace rankine

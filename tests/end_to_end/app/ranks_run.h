#pragma once
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "training_run.h"

// Training runs of several ranks, and their processes.
namespace rankine::test {

// Open MPI's launcher in PATH, for ranks that a user's launcher starts, whose plain name may be
// another MPI's; empty without it.
inline std::string open_mpi_launcher() {
  if (std::system("command -v mpirun.openmpi >/dev/null") == 0) return "mpirun.openmpi";
  return std::system("mpirun --version 2>/dev/null | grep -q 'Open MPI'") == 0 ? "mpirun" : "";
}

inline size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class RanksRun : public TrainingRun {
 protected:
  // A run of one thread a rank, in micro-batches of one sequence.
  std::vector<std::string> train_ranks(int ranks, const std::vector<std::string>& more) {
    std::vector<std::string> words =
        train({"--threads", "1", "--micro-batch-size", "1", "--global-batch-size", "12"});
    if (ranks > 1) words.insert(words.end(), {"--ranks", std::to_string(ranks)});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::vector<std::string> resume_ranks(int ranks, const std::string& name,
                                        const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"train", "--resume", "--output", at(name)};
    if (ranks > 1) words.insert(words.end(), {"--ranks", std::to_string(ranks)});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void succeed(const std::vector<std::string>& words) {
    const Finished done = run(words);
    ASSERT_EQ(done.code, 0) << done.err;
  }

  // Ranks started by a launcher of the user's.
  static Start under_mpirun(int ranks) {
    return {{open_mpi_launcher(), "-n", std::to_string(ranks), "--oversubscribe", "--bind-to",
             "none", RANKINE_BINARY},
            [] {
              ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
              ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
            }};
  }

  // Losses within `tolerance`, relative; norms within ten times that.
  void expect_near_losses(const std::string& run, const std::string& reference, double tolerance) {
    const std::vector<Json> a = metrics(home() / run), b = metrics(home() / reference);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i]["step"], b[i]["step"]);
      for (const auto& [key, bound] :
           {std::pair{"loss", tolerance}, {"grad_norm", 10 * tolerance}}) {
        const double x = a[i][key].get<double>(), y = b[i][key].get<double>();
        EXPECT_LE(std::abs(x - y), bound * std::abs(y))
            << run << " step " << i + 1 << " " << key << " " << x << " instead of " << y;
      }
    }
  }

  // The exported model of a run's newest checkpoint.
  std::string exported(const std::string& run_name) {
    const std::string to = run_name + "-exported";
    const Finished done = run({"convert", "--from", at(run_name), "--to", at(to)});
    EXPECT_EQ(done.code, 0) << done.err;
    return read_text(home() / to / "model.safetensors");
  }

  // Waits until a run has written so many lines of metrics.
  bool reaches_step(const Command& command, const std::string& name, size_t steps) {
    const fs::path file = home() / name / "metrics.jsonl";
    for (int i = 0; i < 6000 && command.running(); ++i) {
      if (fs::exists(file) && occurrences(read_text(file), "\n") >= steps) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }
};

inline std::vector<pid_t> descendants(pid_t process) {
  std::vector<pid_t> out;
  std::error_code code;
  for (const auto& thread :
       fs::directory_iterator("/proc/" + std::to_string(process) + "/task", code)) {
    std::ifstream children(thread.path() / "children");
    for (pid_t child = 0; children >> child;) {
      out.push_back(child);
      for (const pid_t further : descendants(child)) out.push_back(further);
    }
  }
  return out;
}

// Processes of a job's ranks, by rank; the program that started them is their ancestor.
inline std::vector<pid_t> rank_processes(const Command& command, int ranks) {
  std::vector<pid_t> out(static_cast<size_t>(ranks), 0);
  for (const pid_t process : descendants(command.process())) {
    std::ifstream file("/proc/" + std::to_string(process) + "/environ", std::ios::binary);
    const std::string environment{std::istreambuf_iterator<char>(file), {}};
    const std::string key = "OMPI_COMM_WORLD_RANK=";
    if (const size_t found = environment.find(key); found != std::string::npos)
      out.at(std::stoul(environment.substr(found + key.size()))) = process;
  }
  return out;
}

// Whether a process runs or is stopped; one that only waits to be reaped is gone.
inline bool alive(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string word, state;
  file >> word >> word >> state;
  return !state.empty() && state != "Z" && state != "X";
}

inline bool all_gone(const std::vector<pid_t>& processes) {
  for (int i = 0; i < 500; ++i) {
    if (std::ranges::none_of(processes, alive)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

}  // namespace rankine::test

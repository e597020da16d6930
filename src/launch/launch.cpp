#include "launch/launch.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace rankine {
namespace {

// Reads the numbers of one launcher's variables.
class Variables {
 public:
  explicit Variables(const EnvironmentLookup& lookup) : lookup_(lookup) {}

  bool has(const char* name) const { return lookup_(name) != nullptr; }
  std::string_view text(const char* name) const {
    const char* value = lookup_(name);
    return value ? value : "";
  }
  int number(const char* name) const {
    const std::string_view value = text(name);
    require(has(name), ErrorKind::environment,
            "the launcher does not set {}; start the ranks with mpirun or srun --mpi=pmix", name);
    int out = -1;
    const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), out);
    require(status == std::errc() && end == value.data() + value.size() && out >= 0,
            ErrorKind::environment, "{}='{}' in the environment is no number; unset it", name,
            value);
    return out;
  }
  int number_or(const char* name, int fallback) const {
    return has(name) ? number(name) : fallback;
  }

 private:
  const EnvironmentLookup& lookup_;
};

// Slurm's "2(x3),1": tasks of each node, here 2, 2, 2, 1. -1 when node is not in it.
int tasks_of_node(std::string_view list, int node) {
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), entry.size() + 1));
    int tasks = -1, repeats = 1;
    const char* last = entry.data() + entry.size();
    const char* end = std::from_chars(entry.data(), last, tasks).ptr;
    if (last - end > 2 && end[0] == '(' && end[1] == 'x') std::from_chars(end + 2, last, repeats);
    if (node < repeats) return tasks;
    node -= repeats;
  }
  return -1;
}

Launched under_srun(const Variables& variables) {
  Launched launched{.by = "srun"};
  launched.ranks = variables.number("SLURM_STEP_NUM_TASKS");
  launched.rank = variables.number("SLURM_PROCID");
  launched.local_rank = variables.number("SLURM_LOCALID");
  launched.local_ranks = tasks_of_node(variables.text("SLURM_STEP_TASKS_PER_NODE"),
                                       variables.number_or("SLURM_NODEID", 0));
  require(launched.local_ranks >= 1, ErrorKind::environment,
          "SLURM_STEP_TASKS_PER_NODE='{}' does not say how many ranks run on node {}; start them "
          "with srun",
          variables.text("SLURM_STEP_TASKS_PER_NODE"), variables.text("SLURM_NODEID"));
  return launched;
}

}  // namespace

std::optional<Launched> launched_environment(const EnvironmentLookup& lookup) {
  const Variables variables(lookup);
  std::optional<Launched> launched;
  // mpirun inside a Slurm job keeps the variables of the surrounding step, so what the nearest
  // launcher sets comes first. srun --mpi=pmi2 sets PMI_SIZE as well, but no MPI_LOCALNRANKS.
  if (variables.has("RANKINE_RANK")) {
    const int ranks = variables.number("RANKINE_RANKS"), rank = variables.number("RANKINE_RANK");
    launched = Launched{ranks, rank, ranks, rank, "--ranks", variables.number("RANKINE_BOARD")};
  } else if (variables.has("OMPI_COMM_WORLD_SIZE"))
    launched =
        Launched{variables.number("OMPI_COMM_WORLD_SIZE"), variables.number("OMPI_COMM_WORLD_RANK"),
                 variables.number("OMPI_COMM_WORLD_LOCAL_SIZE"),
                 variables.number("OMPI_COMM_WORLD_LOCAL_RANK"), "Open MPI's mpirun"};
  else if (variables.has("PMI_SIZE") &&
           (variables.has("MPI_LOCALNRANKS") || !variables.has("SLURM_STEP_NUM_TASKS"))) {
    const int ranks = variables.number("PMI_SIZE"), rank = variables.number("PMI_RANK");
    launched = Launched{ranks, rank, variables.number_or("MPI_LOCALNRANKS", ranks),
                        variables.number_or("MPI_LOCALRANKID", rank), "MPICH's mpirun"};
  } else if (variables.has("SLURM_STEP_NUM_TASKS"))
    launched = under_srun(variables);
  if (launched)
    require(
        launched->rank < launched->ranks && launched->local_rank < launched->local_ranks &&
            launched->local_ranks <= launched->ranks,
        ErrorKind::environment,
        "{} says rank {} of {}, local rank {} of {}: this cannot be; start the job from a fresh "
        "shell",
        launched->by, launched->rank, launched->ranks, launched->local_rank, launched->local_ranks);
  return launched;
}

std::optional<Launched> launched_environment() {
  return launched_environment([](const char* name) { return std::getenv(name); });
}

void require_agreement(const Launched& launched, int mpi_ranks) {
  require(launched.ranks == mpi_ranks, ErrorKind::environment,
          "the launcher ({}) says {} ranks, MPI says {}: {}", launched.by, launched.ranks,
          mpi_ranks,
          launched.by == "srun"
              ? "this program is built with Open MPI, which srun reaches with `srun --mpi=pmix`"
              : "this program is built with Open MPI; start it with Open MPI's mpirun "
                "(mpirun.openmpi on Debian) or with `srun --mpi=pmix`");
}

}  // namespace rankine

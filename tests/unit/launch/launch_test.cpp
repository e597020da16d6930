#include "launch/launch.h"

#include <gtest/gtest.h>

#include <map>

#include "support/errors.h"

namespace rankine {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<Launched> launched_with(const Variables& variables) {
  return launched_environment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

// "rank of ranks, local rank of local ranks, launcher".
std::string described(const Variables& variables) {
  const std::optional<Launched> l = launched_with(variables);
  return l ? fmt::format("{} of {}, {} of {}, {}", l->rank, l->ranks, l->local_rank, l->local_ranks,
                         l->by)
           : "alone";
}

const Variables open_mpi = {{"OMPI_COMM_WORLD_SIZE", "8"},
                            {"OMPI_COMM_WORLD_RANK", "5"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}};
const Variables mpich = {
    {"PMI_SIZE", "4"}, {"PMI_RANK", "3"}, {"MPI_LOCALNRANKS", "2"}, {"MPI_LOCALRANKID", "1"}};
// The variables of a job, which its batch script sees too.
const Variables batch = {{"SLURM_JOB_ID", "17"}, {"SLURM_NTASKS", "7"},
                         {"SLURM_PROCID", "0"},  {"SLURM_LOCALID", "0"},
                         {"SLURM_NODEID", "0"},  {"SLURM_TASKS_PER_NODE", "2(x3),1"}};
const Variables step = {{"SLURM_STEP_NUM_TASKS", "7"},
                        {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                        {"SLURM_PROCID", "5"},
                        {"SLURM_LOCALID", "1"},
                        {"SLURM_NODEID", "2"}};

Variables joined(Variables first, const Variables& second) {
  for (const auto& [name, value] : second) first[name] = value;
  return first;
}

TEST(LaunchedEnvironment, EachLauncherIsUnderstood) {
  EXPECT_EQ(described({}), "alone");
  EXPECT_EQ(described(open_mpi), "5 of 8, 1 of 4, Open MPI's mpirun");
  EXPECT_EQ(described(mpich), "3 of 4, 1 of 2, MPICH's mpirun");
  EXPECT_EQ(described({{"PMI_SIZE", "4"}, {"PMI_RANK", "3"}}), "3 of 4, 3 of 4, MPICH's mpirun");
  EXPECT_EQ(described(joined(batch, step)), "5 of 7, 1 of 2, srun");
}

TEST(LaunchedEnvironment, ABatchScriptIsNoRank) {
  EXPECT_EQ(described(batch), "alone");
}

TEST(LaunchedEnvironment, TheNearestLauncherCounts) {
  EXPECT_EQ(described(joined(joined(batch, step), open_mpi)), "5 of 8, 1 of 4, Open MPI's mpirun");
  EXPECT_EQ(described(joined(joined(batch, step), mpich)), "3 of 4, 1 of 2, MPICH's mpirun");
  const Variables pmi2 = {{"PMI_SIZE", "7"}, {"PMI_RANK", "5"}};
  EXPECT_EQ(described(joined(joined(batch, step), pmi2)), "5 of 7, 1 of 2, srun");
}

TEST(LaunchedEnvironment, TasksOfEachNode) {
  const auto local_ranks = [](const char* tasks, const char* node) {
    Variables variables = joined(batch, step);
    variables["SLURM_STEP_NUM_TASKS"] = "100";
    variables["SLURM_STEP_TASKS_PER_NODE"] = tasks;
    variables["SLURM_NODEID"] = node;
    return launched_with(variables)->local_ranks;
  };
  EXPECT_EQ(local_ranks("2(x3),5,3(x2)", "2"), 2);
  EXPECT_EQ(local_ranks("2(x3),5,3(x2)", "3"), 5);
  EXPECT_EQ(local_ranks("2(x3),5,3(x2)", "5"), 3);
  EXPECT_EQ(local_ranks("16", "0"), 16);
  for (const char* tasks : {"", "2", "x", "2(x"})
    EXPECT_THROW(local_ranks(tasks, "1"), Error) << tasks;
}

TEST(LaunchedEnvironment, NonsenseIsNamed) {
  const auto message = [](Variables variables, const char* name, const char* value) {
    if (value)
      variables[name] = value;
    else
      variables.erase(name);
    const Error error = test::error_of([&] { launched_with(variables); });
    EXPECT_EQ(error.kind(), ErrorKind::environment);
    return std::string(error.what());
  };
  for (const char* value : {"", "two", "3x", "-1", "99999999999"})
    EXPECT_NE(message(open_mpi, "OMPI_COMM_WORLD_RANK", value)
                  .find(fmt::format("OMPI_COMM_WORLD_RANK='{}'", value)),
              std::string::npos)
        << value;
  EXPECT_NE(message(open_mpi, "OMPI_COMM_WORLD_RANK", nullptr).find("does not set"),
            std::string::npos);
  EXPECT_NE(message(open_mpi, "OMPI_COMM_WORLD_RANK", "8").find("rank 8 of 8"), std::string::npos);
  EXPECT_NE(message(mpich, "MPI_LOCALRANKID", "2").find("local rank 2 of 2"), std::string::npos);
  EXPECT_NE(message(step, "SLURM_STEP_NUM_TASKS", "1").find("rank 5 of 1"), std::string::npos);
}

TEST(RequireAgreement, SilentSingletonsAreRefusedWithTheCure) {
  const auto refusal = [](const char* by, int ranks, int mpi_ranks) {
    const Error error = test::error_of(
        [&] { require_agreement({.ranks = ranks, .local_ranks = ranks, .by = by}, mpi_ranks); });
    EXPECT_EQ(error.kind(), ErrorKind::environment);
    return std::string(error.what());
  };
  EXPECT_NO_THROW(require_agreement({.ranks = 4, .by = "srun"}, 4));
  const std::string srun = refusal("srun", 4, 1), mpirun = refusal("MPICH's mpirun", 4, 1);
  EXPECT_NE(srun.find("(srun) says 4 ranks, MPI says 1"), std::string::npos) << srun;
  EXPECT_NE(srun.find("srun --mpi=pmix"), std::string::npos) << srun;
  EXPECT_NE(mpirun.find("mpirun.openmpi"), std::string::npos) << mpirun;
}

}  // namespace
}  // namespace rankine

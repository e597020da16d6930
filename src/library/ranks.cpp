#include "library/ranks.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "comm/local_world.h"
#include "comm/mpi_world.h"
#include "launch/launch.h"
#include "launch/processors.h"
#include "library/failure.h"
#include "library/local_ranks.h"
#include "machine/process.h"
#include "machine/stop_signal.h"

namespace rankine {
namespace {

std::string join_numbers(const std::vector<int>& numbers) {
  std::string out;
  for (const int n : numbers) out += (out.empty() ? "" : ",") + std::to_string(n);
  return out;
}

std::vector<int> parse_numbers(const std::string& text) {
  std::vector<int> out;
  for (size_t at = 0; at < text.size();) {
    out.push_back(std::atoi(text.c_str() + at));
    at = text.find(',', at);
    at = at == std::string::npos ? text.size() : at + 1;
  }
  return out;
}

std::vector<int> processors_of(const std::vector<std::vector<int>>& ranks) {
  std::set<int> all;
  for (const std::vector<int>& own : ranks) all.insert(own.begin(), own.end());
  return {all.begin(), all.end()};
}

// Ranks of one host divide the processors they may use.
Rank take_processors(World& world, int64_t asked) {
  std::vector<int> everyone(static_cast<size_t>(world.size()));
  for (size_t i = 0; i < everyone.size(); ++i) everyone[i] = static_cast<int>(i);
  const auto group = world.group(everyone);
  const std::vector<std::string> hosts = all_gather_texts(*group, world.host(), "hosts");
  const std::vector<std::string> lists =
      all_gather_texts(*group, join_numbers(allowed_processors()), "processors");
  std::vector<std::vector<int>> local;
  int local_rank = 0;
  for (size_t r = 0; r < hosts.size(); ++r) {
    if (hosts[r] != world.host()) continue;
    if (static_cast<int>(r) == world.rank()) local_rank = static_cast<int>(local.size());
    local.push_back(parse_numbers(lists[r]));
  }
  const std::vector<int> share = processor_share(local_rank, local);
  pin_to(share);
  const int threads = threads_for(asked, std::getenv("OMP_NUM_THREADS"), share);
  return {world, threads, static_cast<int>(local.size()),
          fmt::format("host {}, processor{} {}, {} thread{}", world.host(),
                      share.size() == 1 ? "" : "s", join_numbers(share), threads,
                      threads == 1 ? "" : "s"),
          processors_of(local)};
}

std::unique_ptr<World> connect(const std::optional<Launched>& launched,
                               const ParallelOptions& options, const MeshShape& mesh) {
  if (!launched || launched->ranks == 1) return make_self_world();
  const WorldSettings settings{.timeout_seconds = options.comm_timeout,
                               .shared_memory = options.shared_memory,
                               .mesh = mesh};
  if (launched->board >= 0) return make_local_world(*launched, settings);
  std::unique_ptr<World> world = make_mpi_world(settings);
  require_agreement(*launched, world->size());
  return world;
}

std::string processors_text(int64_t processors) {
  return fmt::format("the {} processor{} this job may use", processors, processors == 1 ? "" : "s");
}

// What is certain before anything is known of the model.
void check_ranks(const ParallelOptions& o) {
  const auto processors = static_cast<int64_t>(allowed_processors().size());
  const int64_t most = o.oversubscribe * processors;
  require(o.ranks <= most, ErrorKind::resource,
          "--ranks {}: {} take {} ranks at most, {} each; choose fewer, or raise --oversubscribe "
          "(up to {})",
          o.ranks, processors_text(processors), most, o.oversubscribe,
          ParallelOptions::most_oversubscribed);
  constexpr uint64_t least = uint64_t{64} << 20;  // of a process that has barely begun
  const uint64_t memory = physical_memory();
  require(static_cast<uint64_t>(o.ranks) <= memory / least, ErrorKind::resource,
          "--ranks {}: at {} each, the least a rank needs, the {} of this machine's memory are for "
          "{} of them; choose fewer",
          o.ranks, format_bytes(least), format_bytes(memory), memory / least);
  require(o.shared_memory, ErrorKind::usage,
          "--no-shared-memory needs ranks that a launcher started (mpirun, srun): those of --ranks "
          "have nothing but shared memory");
}

int start(const RanksJob& job, const MeshShape& mesh) {
  LocalRanks ranks{
      .ranks = mesh.world(),
      .command = {std::filesystem::read_symlink("/proc/self/exe").string(), job.command},
      .timeout_seconds = job.options.comm_timeout,
      .place = [&](int rank) { return place_of(mesh, rank); }};
  ranks.command.insert(ranks.command.end(), job.arguments.begin(), job.arguments.end());
  return start_local_ranks(ranks);
}

int report(World* world, const MeshShape& mesh, const Error& error) {
  if (world != nullptr && !world->speaks()) return error.exit_code();
  std::string place =
      world != nullptr && world->size() > 1 ? place_of(mesh, world->rank()) + ": " : "";
  // What waits for another rank says so itself.
  if (std::string_view(error.what()).starts_with(place.substr(0, place.rfind(':')))) place = "";
  fmt::print(stderr, "rankine: {}{}{}\n", place,
             error.kind() == ErrorKind::internal ? "internal error: " : "", error.what());
  std::fflush(stderr);
  if (world != nullptr) world->abort(error.what(), error.exit_code());
  return error.exit_code();
}

}  // namespace

int threads_of_first_rank(int64_t asked, int ranks) {
  if (ranks == 1) return static_cast<int>(asked);  // of which the backend makes what there is
  // Where they outnumber the processors each has one, however many they are.
  const int sharers = std::min(ranks, static_cast<int>(allowed_processors().size()) + 1);
  return threads_for(asked, std::getenv("OMP_NUM_THREADS"), processor_share(0, sharers));
}

void check_threads(int64_t threads) {
  constexpr int64_t most = 16;  // a processor
  const auto processors = static_cast<int64_t>(allowed_processors().size());
  require(threads <= most * processors, ErrorKind::resource,
          "--threads {}: {} take {} threads at most, {} each; choose fewer, or 0 for one each",
          threads, processors_text(processors), most * processors, most);
}

int on_ranks(const RanksJob& job, const std::function<int(const Rank&)>& body) {
  const ParallelOptions& options = job.options;
  const std::optional<Launched> launched = launched_environment();
  const int world_size =
      launched ? launched->ranks : std::max<int>(1, static_cast<int>(options.ranks));
  require(!launched || options.ranks == 0 || options.ranks == launched->ranks, ErrorKind::usage,
          "--ranks {} but {} started {}; leave --ranks out under a launcher", options.ranks,
          launched ? launched->by : "", world_size);
  check_threads(job.threads);
  if (!launched && world_size > 1) check_ranks(options);
  const MeshShape mesh = mesh_of(options, world_size);
  if (!launched && world_size > 1) {
    if (job.check_memory) job.check_memory(mesh);
    return start(job, mesh);
  }
  receive_stop_signals_aside();
  std::unique_ptr<World> world;
  try {
    world = connect(launched, options, mesh);
    if (world->size() == 1)
      return body({*world, static_cast<int>(job.threads), 1, "", allowed_processors()});
    return body(take_processors(*world, job.threads));
  } catch (const std::exception&) {
    return report(world.get(), mesh, failure_of(std::current_exception()));
  }
}

}  // namespace rankine

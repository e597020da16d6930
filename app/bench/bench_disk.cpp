#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "bench/bench.h"
#include "io/tier_file.h"
#include "machine/process.h"

namespace rankine {
namespace {

constexpr int rounds = 3;
constexpr uint64_t request_bytes = uint64_t{4} << 20;
// More than fio keeps, so that there is work in line until the next request is started.
constexpr size_t requests_under_way = 16;
constexpr int fio_depth = 8;

using Memory = std::unique_ptr<std::byte, decltype(&std::free)>;

Memory filled_memory(uint64_t bytes) {
  Memory memory(static_cast<std::byte*>(std::aligned_alloc(TierFile::alignment, bytes)), std::free);
  require(memory != nullptr, ErrorKind::resource, "no memory for {}", format_bytes(bytes));
  for (uint64_t i = 0; i < bytes; ++i)
    memory.get()[i] = static_cast<std::byte>(i * 2654435761U >> 13);
  return memory;
}

// Bytes a second from one end of the file to the other.
double pass(TierFile& file, std::byte* memory, bool write) {
  std::array<TierWork, requests_under_way> works;
  const double start = monotonic_seconds();
  for (uint64_t i = 0; i * request_bytes < file.bytes(); ++i) {
    const size_t place = i % requests_under_way;
    std::byte* const own = memory + place * request_bytes;
    const uint64_t offset = i * request_bytes;
    const uint64_t bytes = std::min(request_bytes, file.bytes() - offset);
    works[place].wait();
    works[place] =
        write ? file.start_write(offset, own, bytes) : file.start_read(offset, own, bytes);
  }
  for (TierWork& work : works) work.wait();
  return static_cast<double>(file.bytes()) / (monotonic_seconds() - start);
}

// What a program prints when started in `folder`; nothing when it cannot be started or fails.
std::optional<std::string> output_of(const std::vector<std::string>& words,
                                     const std::filesystem::path& folder) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int ends[2];
  require(::pipe2(ends, O_CLOEXEC) == 0, ErrorKind::environment, "cannot make a pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  pid_t process = 0;
  const int failure =
      ::posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; failure == 0 && (got = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  ::close(ends[0]);
  if (failure != 0) return std::nullopt;
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? std::optional(text) : std::nullopt;
}

// fio with a file of its own in the same folder as the measured one, removed at the end.
class Fio {
 public:
  explicit Fio(const TierFile& file)
      : folder_(file.path().parent_path()),
        held_(File::create_temporary(folder_ / "fio")),
        name_(held_.path().filename().string()),
        bytes_(file.bytes()),
        direct_(file.direct()) {
    for (const char* engine : {"io_uring", "libaio"})
      if (engine_.empty() && rate(engine, true) > 0) engine_ = engine;
  }
  Fio(const Fio&) = delete;
  Fio& operator=(const Fio&) = delete;
  ~Fio() {
    std::error_code ignored;
    std::filesystem::remove(folder_ / name_, ignored);
  }
  const std::string& engine() const { return engine_; }  // empty: there is no fio
  double rate(bool write) const { return rate(engine_, write); }

 private:
  // Bytes a second, 0 when it does not work.
  double rate(const std::string& engine, bool write) const {
    const std::string way = write ? "write" : "read";
    const auto text =
        output_of({"fio", "--name=rankine", "--filename=" + name_, fmt::format("--size={}", bytes_),
                   "--rw=" + way, fmt::format("--bs={}", request_bytes),
                   fmt::format("--iodepth={}", fio_depth), "--ioengine=" + engine,
                   fmt::format("--direct={}", direct_ ? 1 : 0), "--output-format=json"},
                  folder_);
    const size_t begin = text ? text->find('{') : std::string::npos;
    if (begin == std::string::npos) return 0;
    const auto json = nlohmann::json::parse(text->substr(begin), nullptr, false);
    if (json.is_discarded()) return 0;
    const nlohmann::json::json_pointer place("/jobs/0/" + way + "/bw_bytes");
    return json.contains(place) ? json.at(place).get<double>() : 0;
  }

  std::filesystem::path folder_;
  File held_;
  std::string name_;
  uint64_t bytes_;
  bool direct_;
  std::string engine_;
};

}  // namespace

DiskFigures measure_disk(const std::filesystem::path& folder, uint64_t bytes) {
  require(bytes >= request_bytes, ErrorKind::usage, "--disk-size {}: give at least {}",
          format_bytes(bytes), format_bytes(request_bytes));
  bytes = bytes / TierFile::alignment * TierFile::alignment;
  TierFile file({.folder = folder, .name = "rankine-offload-bench.tier", .bytes = bytes});
  const Memory memory = filled_memory(requests_under_way * request_bytes);
  // Both files are written once before: bytes never written cost more than those written again.
  pass(file, memory.get(), true);
  const Fio fio(file);
  DiskFigures figures{.bytes = bytes,
                      .direct = file.direct(),
                      .engine = std::string(file.engine_name()),
                      .fio_engine = fio.engine(),
                      .write = {},
                      .read = {}};
  for (const bool write : {true, false}) {
    std::vector<double> own, others, shares;
    for (int round = 0; round < rounds; ++round) {
      own.push_back(pass(file, memory.get(), write));
      if (fio.engine().empty()) continue;
      others.push_back(fio.rate(write));
      shares.push_back(own.back() / others.back());
    }
    DiskFigures::Way& way = write ? figures.write : figures.read;
    way.bytes_per_second = median(own);
    if (shares.empty()) continue;
    way.fio_bytes_per_second = median(others);
    way.share = median(shares);
  }
  return figures;
}

}  // namespace rankine

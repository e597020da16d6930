#include "library/run_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary.h"
#include "base/text.h"
#include "checkpoint/checksum.h"
#include "checkpoint/manifest.h"
#include "data/text_tokenizer.h"
#include "runtime/metrics.h"
#include "runtime/run_state.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

constexpr const char* config_name = "config.toml";
constexpr const char* metrics_name = "metrics.jsonl";

std::string seal_of(std::string_view toml) {
  Checksum checksum;
  checksum.update(toml.data(), toml.size());
  return fmt::format("\n# checksum of the text above: xxh3-64:{:016x}\n", checksum.value());
}

// The configuration in a sealed text, when it is as it was written.
std::optional<std::string> opened(const std::string& text) {
  const size_t bytes = seal_of("").size();
  if (text.size() < bytes) return std::nullopt;
  std::string toml = text.substr(0, text.size() - bytes);
  if (text.substr(toml.size()) != seal_of(toml)) return std::nullopt;
  return toml;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : "; ") + text;
  return out;
}

// config.toml, or the checkpoint's own where that is not as it was written.
void take_configuration(const fs::path& folder, const std::string& of_checkpoint, StoredRun& run) {
  const fs::path file = folder / config_name;
  const bool there = is_there(file);
  const std::string text = there ? read_text(file, uint64_t{1} << 24) : "";
  const std::optional<std::string> whole = opened(text);
  if (whole || (there && text == of_checkpoint)) {
    run.configuration = {whole ? *whole : text, file.string()};
    return;
  }
  const std::string fault =
      fmt::format("'{}' {}", file.string(),
                  there ? "is not as it was written, edited or damaged" : "is missing");
  require(
      run.newest.found.has_value(), ErrorKind::data,
      "{}, and there is no checkpoint yet that says how the run began; begin it anew in another "
      "--output{}",
      fault, there ? ", with --config to take the file as it is" : "");
  const fs::path& checkpoint = run.newest.found->folder;
  run.configuration = {of_checkpoint, (checkpoint / manifest_name).string()};
  run.warnings.push_back(
      fmt::format("{}: the configuration of '{}' is taken; options are changed on the command line",
                  fault, checkpoint.string()));
}

// The run's own copy may be damaged; the manifest covers the checkpoint's.
void take_tokenizer(const fs::path& folder, const Manifest& manifest, StoredRun& run) {
  const fs::path& checkpoint = run.newest.found->folder;
  if (TextTokenizer::lies_in(checkpoint)) run.tokenizer = checkpoint;
  for (const auto& [name, text] : read_small_files(checkpoint, manifest))
    if (!is_there(folder / name) || read_text(folder / name) != text)
      run.warnings.push_back(fmt::format(
          "'{}' is {} that of '{}', which is taken and written anew", (folder / name).string(),
          is_there(folder / name) ? "not" : "missing; unlike", checkpoint.string()));
}

void require_no_run(const fs::path& folder, std::vector<std::string>& notes) {
  const NewestCheckpoint newest = newest_checkpoint(folder);
  require(!newest.found, ErrorKind::usage,
          "'{}' holds a run already; continue it with --resume, or choose another --output",
          folder.string());
  require(newest.skipped.empty(), ErrorKind::usage,
          "'{}' holds no usable checkpoint, but {}; choose another --output, or move that away",
          folder.string(), joined(newest.skipped));
  const fs::path config = folder / config_name, metrics = folder / metrics_name;
  const bool stopped_early = is_there(config) && opened(read_text(config)).has_value();
  if (stopped_early)
    notes.push_back(
        fmt::format("'{}' holds a run that stopped before its first checkpoint; it begins anew",
                    folder.string()));
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool written_by_runs = name == config_name || is_carried_name(name) ||
                                 (name == metrics_name && !looks_like_metrics(read_text(metrics)));
    require(stopped_early || !written_by_runs, ErrorKind::usage,
            "'{}' is there, and no run that stopped before its first checkpoint left it so; choose "
            "another --output, or move it away",
            entry.path().string());
  }
}

// The folders on the way that are not there, innermost first.
std::vector<fs::path> missing_folders(fs::path folder) {
  std::vector<fs::path> out;
  for (folder = fs::absolute(folder).lexically_normal(); !is_there(folder);
       folder = folder.parent_path())
    if (folder.has_filename()) out.push_back(folder);
  return out;
}

// Makes the first runs/MODEL-N that is not there.
fs::path make_numbered(const std::string& model) {
  make_folders("runs");
  for (int n = 1;; ++n) {
    const fs::path folder =
        fs::path("runs") / fmt::format("{}-{}", fs::path(model).filename().string(), n);
    if (::mkdir(folder.c_str(), 0777) == 0) return folder;
    if (errno != EEXIST) fail_io("create folder", folder);
  }
}

}  // namespace

StoredRun stored_run(const fs::path& folder) {
  StoredRun run;
  run.newest = newest_checkpoint(folder);
  run.warnings = fallback_warnings(run.newest);
  if (!run.newest.found) {
    require(run.newest.skipped.empty(), ErrorKind::data,
            "'{}' holds no complete checkpoint to resume from: {}", folder.string(),
            joined(run.newest.skipped));
    require(is_there(folder / config_name), ErrorKind::data,
            "'{}' holds no run to resume: neither a complete checkpoint nor a {}; leave --resume "
            "out to begin one",
            folder.string(), config_name);
    take_configuration(folder, "", run);
    return run;
  }
  const fs::path& checkpoint = run.newest.found->folder;
  const Manifest manifest = read_manifest(checkpoint);
  if (!manifest.sealed) run.warnings.push_back(unsealed_warning(checkpoint));
  const RunState state = parse_run_state(manifest.state, (checkpoint / manifest_name).string());
  take_configuration(folder, state.configuration, run);
  take_tokenizer(folder, manifest, run);
  return run;
}

std::string sealed_configuration(const std::string& toml) {
  return toml + seal_of(toml);
}

RunFolder::RunFolder(const Wanted& wanted) : path_(wanted.folder) {
  if (path_.empty()) {
    made_ = missing_folders("runs");
    path_ = make_numbered(wanted.model);
    made_.insert(made_.begin(), path_);
  } else if (wanted.resumed == nullptr) {
    require(is_folder(path_) || !is_there(path_), ErrorKind::usage,
            "--output '{}' is there and no folder", path_.string());
    made_ = missing_folders(path_);
    make_folders(path_);
  }
  lock_.emplace(path_ / ".rankine-lock", fmt::format("run '{}'", path_.string()),
                "wait for its end, or choose another --output");
  if (!lock_->works())
    notes_.push_back(
        fmt::format("warning: the file system of '{}' has no locks: nothing keeps a "
                    "second job out of this run",
                    path_.string()));
  if (wanted.resumed == nullptr) {
    require_no_run(path_, notes_);
  } else {
    const auto &then = wanted.resumed->newest.found, now = newest_checkpoint(path_).found;
    require(
        (then ? then->step : -1) == (now ? now->step : -1), ErrorKind::environment,
        "run '{}' was in use by another job a moment ago, which left a checkpoint; resume again",
        path_.string());
  }
  remove_abandoned(path_);
}

RunFolder::~RunFolder() {
  lock_.reset();
  for (const fs::path& folder : made_)
    if (::rmdir(folder.c_str()) != 0) break;  // which only an empty one allows
}

}  // namespace rankine

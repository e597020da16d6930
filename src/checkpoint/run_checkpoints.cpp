#include "checkpoint/run_checkpoints.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/manifest.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

std::string step_name(int64_t step) {
  return fmt::format("step-{:08}", step);
}

// The number in "step-00000042"; -1 for every other name.
int64_t step_of(const std::string& name) {
  constexpr std::string_view prefix = "step-";
  if (!name.starts_with(prefix)) return -1;
  int64_t step = -1;
  const char* end = name.data() + name.size();
  const auto result = std::from_chars(name.data() + prefix.size(), end, step);
  const bool whole = result.ec == std::errc() && result.ptr == end && step >= 0;
  return whole && name == step_name(step) ? step : -1;
}

bool is_rank_file(std::string_view name) {
  constexpr std::string_view begin = "rank-", end = ".safetensors";
  if (!name.starts_with(begin) || !name.ends_with(end)) return false;
  name.remove_prefix(begin.size());
  name.remove_suffix(end.size());
  return name.size() >= 5 && name.find_first_not_of("0123456789") == std::string_view::npos;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
    out.push_back(it->path());
  errno = code.value();
  if (code && errno != ENOENT && errno != ENOTDIR) fail_io("read folder", folder);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

fs::path checkpoint_folder(const fs::path& run_folder, int64_t step) {
  return run_folder / step_name(step);
}

std::vector<RunCheckpoint> run_checkpoints(const fs::path& run_folder) {
  std::vector<RunCheckpoint> out;
  for (const fs::path& path : entries_of(run_folder)) {
    const int64_t step = step_of(path.filename().string());
    if (step >= 0) out.push_back({step, path});
  }
  std::sort(out.begin(), out.end(),
            [](const RunCheckpoint& a, const RunCheckpoint& b) { return a.step > b.step; });
  return out;
}

std::string fault_of(const fs::path& checkpoint) {
  try {
    const Manifest manifest = read_manifest(checkpoint);
    read_small_files(checkpoint, manifest);
    for (const ManifestFile& file : manifest.files) {
      const fs::path path = checkpoint / file.name;
      require(is_there(path), ErrorKind::data, "'{}' is missing", path.string());
      const uint64_t bytes = File::open_read(path).size();
      require(bytes == file.bytes, ErrorKind::data, "'{}' has {} bytes, the manifest says {}",
              path.string(), bytes, file.bytes);
    }
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

NewestCheckpoint newest_checkpoint(const fs::path& run_folder) {
  NewestCheckpoint out;
  for (const RunCheckpoint& checkpoint : run_checkpoints(run_folder)) {
    const std::string fault = fault_of(checkpoint.folder);
    if (fault.empty()) {
      out.found = checkpoint;
      break;
    }
    out.skipped.push_back(
        fmt::format("checkpoint '{}' cannot be used: {}", checkpoint.folder.string(), fault));
  }
  return out;
}

std::vector<std::string> fallback_warnings(const NewestCheckpoint& newest) {
  std::vector<std::string> out;
  for (const std::string& skipped : newest.skipped)
    out.push_back(skipped + (newest.found ? fmt::format("; the earlier '{}' is used instead",
                                                        newest.found->folder.string())
                                          : ""));
  return out;
}

std::vector<std::string> prune_checkpoints(const fs::path& run_folder, const Pruning& pruning) {
  std::vector<std::string> left;
  int64_t kept = 0;
  for (const RunCheckpoint& checkpoint : run_checkpoints(run_folder)) {
    if (checkpoint.step > pruning.last_step || !fault_of(checkpoint.folder).empty()) continue;
    if (kept++ < pruning.keep) continue;
    const bool link = fs::is_symlink(fs::symlink_status(checkpoint.folder));
    const std::string foreign = link ? "" : foreign_entry(checkpoint.folder);
    if (!link && foreign.empty())
      remove_whole(checkpoint.folder);
    else
      left.push_back(
          fmt::format("checkpoint '{}' is kept: {}", checkpoint.folder.string(),
                      link ? "it is a link"
                           : fmt::format("it holds '{}', which is of no checkpoint", foreign)));
  }
  return left;
}

bool is_carried_name(std::string_view name) {
  constexpr std::array<std::string_view, 12> names{
      "config.json",       "generation_config.json",  "model.safetensors.index.json",
      "tokenizer.json",    "tokenizer_config.json",   "tokenizer.model",
      "added_tokens.json", "special_tokens_map.json", "vocab.json",
      "merges.txt",        "chat_template.jinja",     "chat_template.json"};
  return std::ranges::find(names, name) != names.end();
}

std::string foreign_entry(const fs::path& checkpoint) {
  bool is_checkpoint = false;
  std::string first;
  for (const fs::path& path : entries_of(checkpoint)) {
    first = path.filename().string();
    const bool own = first == manifest_name || is_rank_file(first);
    is_checkpoint |= own;
    const bool plain = fs::is_regular_file(fs::symlink_status(path));
    if (!plain || !(own || is_carried_name(first))) return first;
  }
  return is_checkpoint ? "" : first;
}

}  // namespace rankine

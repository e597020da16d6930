#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The checkpoints of a run: the folders "step-00000042" within its own. Rule: who resumes, reads or
// prunes a run learns of its checkpoints here and nowhere else.
namespace rankine {

struct RunCheckpoint {
  int64_t step = 0;
  std::filesystem::path folder;
};

// "<run_folder>/step-00000042".
std::filesystem::path checkpoint_folder(const std::filesystem::path& run_folder, int64_t step);
// All folders with such names, newest first. Error{environment} when the folder cannot be read.
std::vector<RunCheckpoint> run_checkpoints(const std::filesystem::path& run_folder);
// Why a checkpoint cannot be used: its manifest or a small file is damaged, or a file has not the
// size it should have; "" when it can. Large files are compared with their checksums when read.
std::string fault_of(const std::filesystem::path& checkpoint);

struct NewestCheckpoint {
  std::optional<RunCheckpoint> found;  // the newest without a fault
  std::vector<std::string> skipped;    // of each newer one: its folder and fault
};
NewestCheckpoint newest_checkpoint(const std::filesystem::path& run_folder);
// What there is to say of the skipped ones, a line each.
std::vector<std::string> fallback_warnings(const NewestCheckpoint& newest);

// Removes usable checkpoints up to `last_step` but the newest `keep` of them. Returns what it left
// alone and why: folders that hold what no checkpoint has.
struct Pruning {
  int64_t keep = 0, last_step = 0;
};
std::vector<std::string> prune_checkpoints(const std::filesystem::path& run_folder,
                                           const Pruning& pruning);

// Whether checkpoints and exported models carry a small file of that name beside their weights.
bool is_carried_name(std::string_view name);
// The first entry of a folder that no checkpoint has, by its name and kind; "" when there is none.
std::string foreign_entry(const std::filesystem::path& checkpoint);

}  // namespace rankine

#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/lock.h"
#include "base/options.h"
#include "checkpoint/run_checkpoints.h"

// The folder of a run: what of it is whole, and who works in it.
namespace rankine {

// What a run's folder holds for going on with it.
struct StoredRun {
  NewestCheckpoint newest;            // none: the run stopped before its first
  StoredOptions configuration;        // and where it stands
  std::filesystem::path tokenizer;    // a folder with one that the manifest covers, or ""
  std::vector<std::string> warnings;  // of what is missing or damaged and what is used instead
};
// Error{data} when there is nothing to go on with, saying why.
StoredRun stored_run(const std::filesystem::path& folder);

// The text of config.toml: the configuration and a checksum of it.
std::string sealed_configuration(const std::string& toml);

// Held by one job at a time, on its first rank. Made when missing; goes again when it stays empty.
class RunFolder {
 public:
  // `folder` empty: the first free runs/MODEL-N. A new run is refused, Error{usage}, where one is
  // already, or files that are none of a run's; a resumed one when another job was there meanwhile.
  struct Wanted {
    std::filesystem::path folder;
    std::string model;
    const StoredRun* resumed = nullptr;  // null: a new run
  };
  explicit RunFolder(const Wanted& wanted);
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  ~RunFolder();

  const std::filesystem::path& path() const { return path_; }
  // What to say at the start, a line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::filesystem::path path_;
  std::vector<std::filesystem::path> made_;  // folders, innermost first
  std::optional<LockFile> lock_;
  std::vector<std::string> notes_;
};

}  // namespace rankine

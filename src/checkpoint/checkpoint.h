#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "checkpoint/manifest.h"
#include "comm/communicator.h"
#include "ops/ops.h"
#include "tensor/named_tensor.h"

// Training checkpoints: a folder of safetensors files and a manifest. Rule: a checkpoint is
// complete or absent under its name; boxes written by any mesh are read by any other.
namespace rankine {

// Tensors stored as "<prefix>/<name>": "weights", "momentum", "variance".
struct TensorGroup {
  std::string prefix;
  std::span<const NamedTensor> tensors;
};

// Small files that lie beside the tensors: name -> text, e.g. tokenizer.json.
using ExtraFiles = std::map<std::string, std::string>;

// Writes all boxes, then the manifest, under a temporary name, and renames that to `folder`. An
// earlier checkpoint is replaced; Error{usage} when something else is there. `state` is the text of
// a JSON object. The boxes of each tensor must tile it.
void save_checkpoint(const std::filesystem::path& folder, const std::string& state,
                     std::span<const TensorGroup> groups, Ops& ops, const ExtraFiles& extra = {});
// The same by all ranks of a group together: each writes its own boxes to a file of its own (none
// when it has none), the first then joins the tables of contents. The folder must be seen by all.
void save_checkpoint_together(const std::filesystem::path& folder, const std::string& state,
                              std::span<const TensorGroup> groups, Ops& ops, Communicator& ranks,
                              const ExtraFiles& extra = {});

// Fills every given box from whichever files hold parts of it, and returns the state. Error{data}
// naming file or tensor when something is missing, damaged, or of another shape or dtype.
std::string load_checkpoint(const std::filesystem::path& folder,
                            std::span<const TensorGroup> groups, Ops& ops);
// The group "weights" alone.
std::string load_weights(const std::filesystem::path& folder, std::span<const NamedTensor> weights,
                         Ops& ops);

// ---- the parts of saving, for several ranks: each writes its file, one joins and commits
// Writes "rank-<rank>.safetensors" into `folder` (fsync included); returns what it holds.
Manifest write_rank_file(const std::filesystem::path& folder, int rank,
                         std::span<const TensorGroup> groups, Ops& ops);
// One manifest of all ranks' files; Error{data} when the boxes do not tile the tensors.
Manifest join_manifests(std::span<const Manifest> ranks, const std::string& state);

}  // namespace rankine

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checksum.h"
#include "checkpoint/json.h"
#include "checkpoint/pending_folder.h"
#include "checkpoint/run_checkpoints.h"
#include "checkpoint/safetensors.h"
#include "comm/world.h"

namespace rankine {
namespace {

// A group's tensors with the names and places they get in the file.
struct Listing {
  Manifest manifest;
  std::vector<SafetensorsTensor> stored;
  std::vector<Tensor> data;
};

Listing list_pieces(std::span<const TensorGroup> groups, const std::string& file_name) {
  Listing out;
  std::map<std::string, size_t> seen;
  ManifestFile file{file_name, 0, 0, {}};
  for (const TensorGroup& group : groups)
    for (const NamedTensor& tensor : group.tensors) {
      expect(tensor.data.elements() == volume(tensor.box), "the data of a box has its volume");
      if (volume(tensor.box) == 0) continue;
      const ManifestTensor global{group.prefix + "/" + tensor.name, tensor.data.dtype,
                                  tensor.shape};
      if (seen.emplace(global.name, out.manifest.tensors.size()).second)
        out.manifest.tensors.push_back(global);
      expect(out.manifest.tensors[seen[global.name]] == global, "boxes of one tensor agree on it");
      file.pieces.push_back({global.name, tensor.box});
      out.stored.push_back(
          {piece_name(file.pieces.back(), tensor.shape), tensor.data.dtype, extent(tensor.box)});
      out.data.push_back(tensor.data);
    }
  out.manifest.files.push_back(std::move(file));
  return out;
}

void write_texts(const std::filesystem::path& folder, Manifest manifest, const ExtraFiles& extra) {
  for (const auto& [name, text] : extra) {
    write_text_atomically(folder / name, text);
    Checksum checksum;
    checksum.update(text.data(), text.size());
    manifest.files.push_back({name, text.size(), checksum.value(), {}});
  }
  write_text_atomically(folder / manifest_name, manifest_text(manifest));
}

void require_own_checkpoint(const std::filesystem::path& folder) {
  const std::string foreign = foreign_entry(folder);
  require(foreign.empty(), ErrorKind::usage,
          "'{}' is there and holds '{}', which is of no checkpoint; choose another folder, or move "
          "it away",
          folder.string(), foreign);
}

}  // namespace

Manifest write_rank_file(const std::filesystem::path& folder, int rank,
                         std::span<const TensorGroup> groups, Ops& ops) {
  Listing listing = list_pieces(groups, fmt::format("rank-{:05}.safetensors", rank));
  ManifestFile& file = listing.manifest.files[0];
  SafetensorsWriter writer(folder / file.name, listing.stored);
  Checksum checksum;
  checksum.update(writer.header().data(), writer.header().size());
  constexpr int64_t chunk_bytes = 4 << 20;
  std::vector<char> buffer;
  for (size_t i = 0; i < listing.data.size(); ++i) {
    const Tensor& tensor = listing.data[i];
    const int64_t width = dtype_bytes(tensor.dtype), step = chunk_bytes / width;
    for (int64_t first = 0; first < tensor.elements(); first += step) {
      const int64_t count = std::min(step, tensor.elements() - first);
      buffer.resize(static_cast<size_t>(count * width));
      ops.download(tensor.range(first, count), buffer.data());
      checksum.update(buffer.data(), buffer.size());
      writer.write(i, first, buffer.data(), count);
    }
  }
  file.bytes = writer.finish();
  file.checksum = checksum.value();
  return std::move(listing.manifest);
}

Manifest join_manifests(std::span<const Manifest> ranks, const std::string& state) {
  Manifest out;
  std::map<std::string, size_t> seen;
  for (const Manifest& rank : ranks) {
    for (const ManifestTensor& tensor : rank.tensors) {
      if (seen.emplace(tensor.name, out.tensors.size()).second) out.tensors.push_back(tensor);
      require(out.tensors[seen[tensor.name]] == tensor, ErrorKind::data,
              "saving: ranks disagree on dtype or shape of tensor '{}'", tensor.name);
    }
    out.files.insert(out.files.end(), rank.files.begin(), rank.files.end());
  }
  const nlohmann::json parsed = parse_json(state, "the state to save");
  require(parsed.is_object(), ErrorKind::data, "the state to save is not a JSON object");
  out.state = parsed.dump();
  check(out, "saving");
  return out;
}

void save_checkpoint(const std::filesystem::path& folder, const std::string& state,
                     std::span<const TensorGroup> groups, Ops& ops, const ExtraFiles& extra) {
  PendingFolder pending(folder, require_own_checkpoint);
  const Manifest mine = write_rank_file(pending.path(), 0, groups, ops);
  write_texts(pending.path(), join_manifests(std::span(&mine, 1), state), extra);
  pending.commit();
}

void save_checkpoint_together(const std::filesystem::path& folder, const std::string& state,
                              std::span<const TensorGroup> groups, Ops& ops, Communicator& ranks,
                              const ExtraFiles& extra) {
  std::optional<PendingFolder> pending;
  if (ranks.rank() == 0) pending.emplace(folder, require_own_checkpoint);
  const std::filesystem::path place =
      broadcast_text(ranks, pending ? pending->path().string() : "", 0, "checkpoint");
  const bool holds = std::ranges::any_of(groups, [](const TensorGroup& group) {
    return std::ranges::any_of(group.tensors,
                               [](const NamedTensor& t) { return volume(t.box) > 0; });
  });
  const Manifest mine = holds ? write_rank_file(place, ranks.rank(), groups, ops) : Manifest{};
  std::vector<Manifest> parts;
  for (const std::string& text : all_gather_texts(ranks, manifest_text(mine), "checkpoint"))
    parts.push_back(parse_manifest_part(text, "a rank's part of the checkpoint"));
  if (pending) {
    write_texts(pending->path(), join_manifests(parts, state), extra);
    pending->commit();
  }
  ranks.barrier("checkpoint").wait();
}

}  // namespace rankine

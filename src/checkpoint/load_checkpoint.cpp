#include <algorithm>
#include <map>
#include <vector>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checksum.h"
#include "checkpoint/safetensors.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

struct Wanted {
  const NamedTensor* tensor;
  int64_t filled = 0;
};
using WantedByName = std::multimap<std::string, Wanted, std::less<>>;

WantedByName match_wanted(const Manifest& manifest, std::span<const TensorGroup> groups,
                          const fs::path& folder) {
  std::map<std::string_view, const ManifestTensor*> known;
  for (const ManifestTensor& tensor : manifest.tensors) known.emplace(tensor.name, &tensor);
  WantedByName out;
  std::vector<std::string> missing;
  for (const TensorGroup& group : groups)
    for (const NamedTensor& tensor : group.tensors) {
      const std::string name = group.prefix + "/" + tensor.name;
      expect(tensor.data.elements() == volume(tensor.box), "the data of a box has its volume");
      const auto at = known.find(name);
      if (at == known.end()) {
        missing.push_back(name);
        continue;
      }
      const ManifestTensor& stored = *at->second;
      require(stored.shape == tensor.shape, ErrorKind::data,
              "checkpoint '{}': tensor '{}' has shape {}, the model wants {}", folder.string(),
              name, to_string(stored.shape), to_string(tensor.shape));
      require(stored.dtype == tensor.data.dtype, ErrorKind::data,
              "checkpoint '{}': tensor '{}' has dtype {}, the run wants {}", folder.string(), name,
              dtype_name(stored.dtype), dtype_name(tensor.data.dtype));
      out.emplace(name, Wanted{&tensor});
    }
  if (!missing.empty())
    fail(ErrorKind::data, "checkpoint '{}' lacks {} of the wanted tensors, the first is '{}'",
         folder.string(), missing.size(), missing.front());
  return out;
}

// The file as the manifest describes it, byte for byte.
SafetensorsFile open_verified(const fs::path& folder, const ManifestFile& listed) {
  const fs::path path = folder / listed.name;
  require(is_there(path), ErrorKind::data, "'{}' is missing; the manifest lists it", path.string());
  const uint64_t bytes = File::open_read(path).size();
  require(bytes == listed.bytes, ErrorKind::data, "'{}' has {} bytes, the manifest says {}",
          path.string(), bytes, listed.bytes);
  SafetensorsFile file(path);
  const uint64_t checksum = file_checksum(file.file());
  require(checksum == listed.checksum, ErrorKind::data,
          "'{}' is damaged: its checksum is {:016x}, the manifest says {:016x}", path.string(),
          checksum, listed.checksum);
  return file;
}

const SafetensorsEntry& piece_entry(const SafetensorsFile& file, const ManifestPiece& piece,
                                    const NamedTensor& wanted) {
  const std::string name = piece_name(piece, wanted.shape);
  const SafetensorsEntry* entry = file.find(name);
  const Shape shape = extent(piece.box);
  require(entry != nullptr && std::ranges::equal(entry->shape, shape.dims()) &&
              entry->dtype == wanted.data.dtype,
          ErrorKind::data, "'{}' does not hold '{}' as {} {}", file.path().string(), name,
          dtype_name(wanted.data.dtype), to_string(shape));
  return *entry;
}

class RunCopier {
 public:
  RunCopier(const SafetensorsFile& file, const SafetensorsEntry& entry, Tensor to, Ops& ops)
      : file_(file), entry_(entry), to_(to), ops_(ops) {}

  // Neighbouring runs are joined, so that rows cost one read and not one each.
  void add(int64_t from, int64_t to, int64_t count) {
    if (from != from_ + count_ || to != to_first_ + count_) {
      flush();
      from_ = from;
      to_first_ = to;
    }
    count_ += count;
  }
  void flush() {
    constexpr int64_t chunk_bytes = 4 << 20;
    const int64_t width = dtype_bytes(entry_.dtype);
    while (count_ > 0) {
      const int64_t count = std::min(count_, chunk_bytes / width);
      buffer_.resize(static_cast<size_t>(count * width));
      file_.read(entry_, from_, count, buffer_.data());
      ops_.upload(buffer_.data(), to_.range(to_first_, count));
      from_ += count;
      to_first_ += count;
      count_ -= count;
    }
  }

 private:
  const SafetensorsFile& file_;
  const SafetensorsEntry& entry_;
  Tensor to_;
  Ops& ops_;
  std::vector<char> buffer_;
  int64_t from_ = 0, to_first_ = 0, count_ = 0;
};

void copy_shared(const SafetensorsFile& file, const ManifestPiece& piece, Wanted& wanted,
                 Ops& ops) {
  const NamedTensor& tensor = *wanted.tensor;
  RunCopier copier(file, piece_entry(file, piece, tensor), tensor.data, ops);
  for_each_shared_run(piece.box, tensor.box, [&](int64_t from, int64_t to, int64_t count) {
    copier.add(from, to, count);
    wanted.filled += count;
  });
  copier.flush();
}

bool is_needed(const ManifestFile& file, const WantedByName& wanted) {
  for (const ManifestPiece& piece : file.pieces) {
    const auto [begin, end] = wanted.equal_range(piece.tensor);
    for (auto at = begin; at != end; ++at)
      if (volume(intersect(piece.box, at->second.tensor->box)) > 0) return true;
  }
  return false;
}

}  // namespace

std::string load_checkpoint(const fs::path& folder, std::span<const TensorGroup> groups, Ops& ops) {
  const Manifest manifest = read_manifest(folder);
  WantedByName wanted = match_wanted(manifest, groups, folder);
  for (const ManifestFile& listed : manifest.files) {
    if (!is_needed(listed, wanted)) continue;
    const SafetensorsFile file = open_verified(folder, listed);
    for (const ManifestPiece& piece : listed.pieces) {
      const auto [begin, end] = wanted.equal_range(piece.tensor);
      for (auto at = begin; at != end; ++at) copy_shared(file, piece, at->second, ops);
    }
  }
  for (const auto& [name, target] : wanted)
    require(target.filled == volume(target.tensor->box), ErrorKind::data,
            "checkpoint '{}': box {} of tensor '{}' got {} elements instead of {}", folder.string(),
            to_string(target.tensor->box), name, target.filled, volume(target.tensor->box));
  return manifest.state;
}

std::string load_weights(const fs::path& folder, std::span<const NamedTensor> weights, Ops& ops) {
  const TensorGroup group{"weights", weights};
  return load_checkpoint(folder, std::span(&group, 1), ops);
}

}  // namespace rankine

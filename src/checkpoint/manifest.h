#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/box.h"
#include "tensor/dtype.h"

// The table of contents of a training checkpoint: global tensors and the box of them that each file
// holds. Rule: the boxes of a tensor tile it, so any box can be put together from them.
namespace rankine {

struct ManifestTensor {
  std::string name;  // "weights/layers.0.mlp.up.weight"
  DType dtype = DType::f32;
  Shape shape;
  bool operator==(const ManifestTensor&) const = default;
};

struct ManifestPiece {
  std::string tensor;
  Box box;
  bool operator==(const ManifestPiece&) const = default;
};

struct ManifestFile {
  std::string name;  // within the folder, e.g. "rank-00000.safetensors", "tokenizer.json"
  uint64_t bytes = 0;
  uint64_t checksum = 0;              // XXH3, 64 bits
  std::vector<ManifestPiece> pieces;  // none: a small file that goes with the model
  bool operator==(const ManifestFile&) const = default;
};

struct Manifest {
  std::vector<ManifestTensor> tensors;
  std::vector<ManifestFile> files;
  std::string state = "{}";  // a JSON object of the caller's
  bool sealed = true;        // read under a checksum of its own; version 1 had none
  bool operator==(const Manifest&) const = default;
};

inline constexpr const char* manifest_name = "manifest.json";

// Error{data} starting with `what` when names repeat, boxes overlap, leave gaps or lie outside.
void check(const Manifest& manifest, std::string_view what);
// Version 2: its last member is a checksum of all text before it.
std::string manifest_text(const Manifest& manifest);
// The checked manifest, of version 2 or 1; Error{data} naming the first fault.
Manifest parse_manifest(std::string_view text, std::string_view what);
// As parse_manifest, of one rank's part: its boxes need not tile anything.
Manifest parse_manifest_part(std::string_view text, std::string_view what);
Manifest read_manifest(const std::filesystem::path& folder);

// The files without pieces, read and compared with their checksums: name -> text. Error{data}.
std::map<std::string, std::string> read_small_files(const std::filesystem::path& folder,
                                                    const Manifest& manifest);

// What to say of a checkpoint that is not sealed.
std::string unsealed_warning(const std::filesystem::path& folder);

// The name a piece has inside its file: the tensor's, with the box when that is not the whole.
std::string piece_name(const ManifestPiece& piece, const Shape& shape);

}  // namespace rankine

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "checkpoint/manifest.h"

namespace rankine {
namespace {

using Boxes = std::vector<const Box*>;

void check_file_name(const std::string& name, std::string_view what) {
  constexpr std::string_view allowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  const bool plain = name.find_first_not_of(allowed) == std::string::npos && name[0] != '.';
  require(!name.empty() && plain, ErrorKind::data, "{}: '{}' is not a plain file name", what, name);
}

void check_shape(const ManifestTensor& tensor, std::string_view what) {
  int64_t elements = dtype_bytes(tensor.dtype);
  for (const int64_t extent : tensor.shape.dims())
    require(extent > 0 && !__builtin_mul_overflow(elements, extent, &elements), ErrorKind::data,
            "{}: tensor '{}' has the impossible shape {}", what, tensor.name,
            to_string(tensor.shape));
}

void check_box(const ManifestPiece& piece, const Shape& shape, std::string_view what) {
  bool inside = piece.box.begin.rank() == shape.rank() && piece.box.end.rank() == shape.rank();
  for (int d = 0; inside && d < shape.rank(); ++d)
    inside = 0 <= piece.box.begin[d] && piece.box.begin[d] < piece.box.end[d] &&
             piece.box.end[d] <= shape[d];
  require(inside, ErrorKind::data, "{}: box {} does not lie in tensor '{}' of shape {}", what,
          to_string(piece.box), piece.tensor, to_string(shape));
}

// The dim along which the boxes differ most: the fewer begin at one place, the fewer pairs to see.
int sweep_dim(const Boxes& boxes, int rank) {
  int best = 0;
  size_t most = 0;
  for (int d = 0; d < rank; ++d) {
    std::set<int64_t> begins;
    for (const Box* box : boxes) begins.insert(box->begin[d]);
    if (begins.size() > most) best = d;
    most = std::max(most, begins.size());
  }
  return best;
}

// Boxes inside a shape tile it when no two meet and their volumes add up to the whole.
void check_tiles(const ManifestTensor& tensor, Boxes boxes, std::string_view what) {
  uint64_t filled = 0;
  for (const Box* box : boxes) filled += static_cast<uint64_t>(volume(*box));
  if (tensor.shape.rank() > 0) {
    const int d = sweep_dim(boxes, tensor.shape.rank());
    std::sort(boxes.begin(), boxes.end(),
              [d](const Box* a, const Box* b) { return a->begin[d] < b->begin[d]; });
    for (size_t i = 0; i < boxes.size(); ++i)
      for (size_t k = i + 1; k < boxes.size() && boxes[k]->begin[d] < boxes[i]->end[d]; ++k)
        require(volume(intersect(*boxes[i], *boxes[k])) == 0, ErrorKind::data,
                "{}: boxes {} and {} of tensor '{}' overlap", what, to_string(*boxes[i]),
                to_string(*boxes[k]), tensor.name);
  }
  const auto elements = static_cast<uint64_t>(tensor.shape.elements());
  require(filled == elements, ErrorKind::data,
          "{}: files hold {} of the {} elements of tensor '{}'", what, filled, elements,
          tensor.name);
}

}  // namespace

void check(const Manifest& manifest, std::string_view what) {
  std::map<std::string_view, std::pair<const ManifestTensor*, Boxes>> tensors;
  for (const ManifestTensor& tensor : manifest.tensors) {
    check_shape(tensor, what);
    require(tensors.try_emplace(tensor.name, &tensor, Boxes{}).second, ErrorKind::data,
            "{}: tensor '{}' is listed twice", what, tensor.name);
  }
  std::set<std::string_view> files;
  for (const ManifestFile& file : manifest.files) {
    check_file_name(file.name, what);
    require(files.insert(file.name).second, ErrorKind::data, "{}: file '{}' is listed twice", what,
            file.name);
    for (const ManifestPiece& piece : file.pieces) {
      const auto tensor = tensors.find(piece.tensor);
      require(tensor != tensors.end(), ErrorKind::data,
              "{}: file '{}' holds the unlisted tensor '{}'", what, file.name, piece.tensor);
      check_box(piece, tensor->second.first->shape, what);
      tensor->second.second.push_back(&piece.box);
    }
  }
  for (auto& [name, entry] : tensors) check_tiles(*entry.first, std::move(entry.second), what);
}

}  // namespace rankine

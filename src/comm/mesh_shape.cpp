#include "comm/mesh_shape.h"

#include <fmt/core.h>

namespace rankine {

std::string place_of(const MeshShape& shape, int rank) {
  const MeshShape::Coordinate c = shape.coordinate(rank);
  std::string inside;
  for (size_t a = 0; a < MeshShape::axes; ++a)
    if (shape.degree[a] > 1)
      inside += fmt::format("{}{} {}", inside.empty() ? "" : ", ", axis_names[a], c[a]);
  return inside.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} ({})", rank, inside);
}

}  // namespace rankine

#include "comm/mesh_shape.h"

#include <fmt/core.h>

#include <algorithm>

namespace rankine {

std::string place_of(const MeshShape& shape, int rank) {
  const MeshShape::Coordinate c = shape.coordinate(rank);
  std::string inside;
  for (size_t a = 0; a < MeshShape::axes; ++a)
    if (shape.degree[a] > 1)
      inside += fmt::format("{}{} {}", inside.empty() ? "" : ", ", axis_names[a], c[a]);
  return inside.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} ({})", rank, inside);
}

std::array<Axis, MeshShape::axes> parse_mesh_order(std::string_view text) {
  std::array<Axis, MeshShape::axes> order{};
  std::array<bool, MeshShape::axes> seen{};
  size_t count = 0;
  for (std::string_view rest = text; count <= MeshShape::axes && !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const auto found = std::ranges::find(axis_names, word);
    const auto axis = static_cast<size_t>(found - axis_names.begin());
    if (found == axis_names.end() || seen[axis] || count == MeshShape::axes) {
      count = 0;
      break;
    }
    seen[axis] = true;
    order[count++] = static_cast<Axis>(axis);
  }
  require(count == MeshShape::axes, ErrorKind::usage,
          "--mesh-order '{}': name each axis once, outermost first, as in "
          "pipeline,data,tensor (the last one's ranks are neighbours)",
          text);
  return order;
}

}  // namespace rankine

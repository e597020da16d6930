#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

// Rank <-> coordinate arithmetic over the axes of hybrid parallelism; knows no communicator.
namespace rankine {

enum class Axis : uint8_t { pipeline, data, tensor };
inline constexpr std::array axis_names{"pipeline", "data", "tensor"};

struct MeshShape {
  static constexpr size_t axes = 3;
  using Coordinate = std::array<int, axes>;
  Coordinate degree{1, 1, 1};
  // Outermost first: tensor ranks are neighbours, unless it says otherwise.
  std::array<Axis, axes> order{Axis::pipeline, Axis::data, Axis::tensor};

  int world() const { return degree[0] * degree[1] * degree[2]; }
  int degree_of(Axis axis) const { return degree[static_cast<size_t>(axis)]; }
  Coordinate coordinate(int rank) const {
    expect(rank >= 0 && rank < world(), "a rank of the mesh");
    Coordinate c{};
    for (size_t i = axes; i-- > 0;) {
      const auto a = static_cast<size_t>(order[i]);
      c[a] = rank % degree[a];
      rank /= degree[a];
    }
    return c;
  }
  int rank(const Coordinate& c) const {
    int r = 0;
    for (const Axis axis : order) {
      const auto a = static_cast<size_t>(axis);
      r = r * degree[a] + c[a];
    }
    return r;
  }
  // The ranks that differ from `rank` along this axis only, itself among them, in order.
  std::vector<int> group(Axis axis, int rank) const {
    Coordinate c = coordinate(rank);
    std::vector<int> members;
    for (int i = 0; i < degree_of(axis); ++i) {
      c[static_cast<size_t>(axis)] = i;
      members.push_back(this->rank(c));
    }
    return members;
  }
};

// "rank 5 (pipeline 1, data 0, tensor 1)"; axes of degree 1 are left out.
std::string place_of(const MeshShape& shape, int rank);
// "pipeline,data,tensor", each axis once; Error{usage} with what it should be like.
std::array<Axis, MeshShape::axes> parse_mesh_order(std::string_view text);

}  // namespace rankine

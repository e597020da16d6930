#include "runtime/finite.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <tuple>

#include "model/param_spec.h"
#include "tensor/finite.h"

namespace rankine {
namespace {

// Where a value is in the order in which they are named.
struct Key {
  int64_t group = 0, tensor = 0, index = 0;
  auto operator<=>(const Key&) const = default;
};

struct First {
  Key key;
  std::string group, name;
  double value = 0;
  int64_t count = 0;  // 0: there is none
};

// Row-major, of a whole tensor.
int64_t whole_index(const NamedTensor& piece, int64_t local) {
  const Shape part = extent(piece.box);
  int64_t index = 0, stride = 1;
  for (int dim = part.rank() - 1; dim >= 0; --dim) {
    index += (piece.box.begin[dim] + local % part[dim]) * stride;
    local /= part[dim];
    stride *= piece.shape[dim];
  }
  return index;
}

NonFinite look_at(const Tensor& tensor, Ops& ops, std::vector<char>& buffer) {
  constexpr int64_t chunk = 1 << 16;
  NonFinite out;
  for (int64_t first = 0; first < tensor.elements(); first += chunk) {
    const Tensor part = tensor.range(first, std::min(chunk, tensor.elements() - first));
    buffer.resize(static_cast<size_t>(part.bytes()));
    ops.download(part, buffer.data());
    const NonFinite found = find_non_finite(buffer.data(), part.dtype, part.elements());
    if (out.count == 0 && found.count > 0) out = {0, first + found.first, found.value};
    out.count += found.count;
  }
  return out;
}

First first_of_rank(const Engine& engine, std::span<const TensorGroup> groups) {
  std::map<std::string, int64_t> order;
  for (const ParamSpec& spec : model_parameters(engine.config()))
    order.emplace(spec.name, std::ssize(order));
  First out;
  std::vector<char> buffer;
  for (size_t g = 0; g < groups.size(); ++g)
    for (const NamedTensor& piece : groups[g].tensors) {
      const NonFinite found = look_at(piece.data, engine.executor().ops(), buffer);
      if (found.count == 0) continue;
      const Key key{static_cast<int64_t>(g), order.at(piece.name), whole_index(piece, found.first)};
      if (out.count == 0 || key < out.key)
        out = {key, groups[g].prefix, piece.name, found.value, out.count};
      out.count += found.count;
    }
  return out;
}

std::string to_line(const First& first) {
  return fmt::format("{} {} {} {} {} {}", first.key.group, first.key.tensor, first.key.index,
                     first.value, first.group, first.name);
}

First from_line(const std::string& line) {
  First out;
  std::string value;
  std::istringstream(line) >> out.key.group >> out.key.tensor >> out.key.index >> value >>
      out.group >> out.name;
  out.value = std::strtod(value.c_str(), nullptr);
  return out;
}

std::vector<int64_t> coordinates(int64_t index, const Shape& shape) {
  std::vector<int64_t> out(static_cast<size_t>(shape.rank()));
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    out[static_cast<size_t>(dim)] = index % shape[dim];
    index /= shape[dim];
  }
  return out;
}

}  // namespace

std::optional<NonFiniteState> find_non_finite(const Engine& engine,
                                              std::span<const TensorGroup> groups) {
  Communicator& ranks = *engine.mesh().world;
  const First mine = first_of_rank(engine, groups);
  int64_t count = mine.count;
  ranks.all_reduce({&count, DType::i64, Shape{1}}, Reduction::sum, "values not finite").wait();
  if (count == 0) return {};
  std::optional<First> first;
  for (const std::string& line :
       all_gather_texts(ranks, mine.count > 0 ? to_line(mine) : "", "values not finite")) {
    if (line.empty()) continue;
    const First other = from_line(line);
    if (!first || other.key < first->key) first = other;
  }
  const std::vector<ParamSpec> specs = model_parameters(engine.config());
  const Shape& shape = specs[static_cast<size_t>(first->key.tensor)].shape;
  return NonFiniteState{first->group, first->name, coordinates(first->key.index, shape),
                        first->value, count};
}

std::string describe(const NonFiniteState& found, const std::string& tensor,
                     const std::vector<int64_t>& index) {
  return fmt::format("{} value{} of the {} {} not finite, {} {}, element [{}] of '{}'", found.count,
                     found.count == 1 ? "" : "s", found.group, found.count == 1 ? "is" : "are",
                     found.count == 1 ? "it is" : "the first is", found.value,
                     fmt::join(index, ", "), tensor);
}

std::string describe(const NonFiniteState& found) {
  return describe(found, found.tensor, found.index);
}

void require_computable(const Engine& engine) {
  const ParamStore& store = engine.store();
  if (store.setup().compute == DType::f32) return;
  std::vector<NamedTensor> computed;
  if (store.counts()) computed = store.computed(Copies::counted);
  const TensorGroup group{"weights", computed};
  const auto found = find_non_finite(engine, std::span(&group, 1));
  store.release_pieces();
  const std::string dtype(dtype_name(store.setup().compute));
  require(!found, ErrorKind::data,
          "{} in {}: the weight is beyond what {} can hold; choose --precision f32{}",
          found ? describe(*found) : "", dtype, dtype,
          store.setup().compute == DType::f16 ? " or bf16" : "");
}

}  // namespace rankine

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "checkpoint/hf_box.h"
#include "checkpoint/hf_model.h"
#include "checkpoint/hf_names.h"
#include "checkpoint/hf_source.h"

namespace rankine {
namespace {

using Places = std::map<std::string, HfSource::Place>;  // by official name

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (const int64_t extent : shape) out += fmt::format("{}{}", out.size() > 1 ? ", " : "", extent);
  return out + "]";
}

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::f64;
}

// Everything that is wrong with a set of tensors, told at once.
struct Faults {
  std::vector<std::string> missing, unknown, unfit;

  static std::string list(std::string_view title, const std::vector<std::string>& names) {
    constexpr size_t most = 8;
    if (names.empty()) return "";
    std::string out = fmt::format("; {} ({}): ", title, names.size());
    for (size_t i = 0; i < std::min(most, names.size()); ++i) {
      if (i > 0) out += ", ";
      out += names[i];
    }
    return names.size() > most ? out + ", ..." : out;
  }
  void raise(const std::filesystem::path& folder) const {
    const std::string text =
        list("missing", missing) + list("unknown", unknown) + list("unfit", unfit);
    require(text.empty(), ErrorKind::data, "the weights in '{}' do not fit the config{}",
            folder.string(), text);
  }
};

void check_entry(const SafetensorsEntry& entry, const Shape& shape, Faults& faults) {
  if (!std::ranges::equal(entry.shape, shape.dims()))
    faults.unfit.push_back(fmt::format("{} has shape {}, the config wants {}", entry.name,
                                       shape_text(entry.shape), to_string(shape)));
  else if (!is_float(entry.dtype))
    faults.unfit.push_back(
        fmt::format("{} has dtype {}", entry.name, safetensors_dtype_name(entry.dtype)));
}

Places match_places(const std::filesystem::path& folder, const HfSource& source,
                    const ModelConfig& config, const std::vector<HfTensor>& tensors) {
  Places places;
  Faults faults;
  for (const auto& [name, place] : source.tensors()) {
    if (is_ignored_hf_name(config, name)) continue;
    require(places.emplace(official_hf_name(config, name), place).second, ErrorKind::data,
            "'{}' holds '{}' twice, with and without a prefix", folder.string(),
            official_hf_name(config, name));
  }
  std::set<std::string> known;
  for (const HfTensor& tensor : tensors) {
    known.insert(tensor.name);
    const auto at = places.find(tensor.name);
    if (at == places.end())
      faults.missing.push_back(tensor.name);
    else
      check_entry(*at->second.entry, tensor.shape, faults);
  }
  for (const auto& [name, place] : places) {
    if (known.contains(name)) continue;
    if (config.tied && name == "lm_head.weight")
      check_entry(*place.entry, Shape{config.vocabulary, config.hidden}, faults);
    else
      faults.unknown.push_back(place.entry->name);
  }
  faults.raise(folder);
  return places;
}

bool same_values(const HfSource::Place& a, const HfSource::Place& b) {
  constexpr int64_t chunk = 1 << 16;
  std::vector<float> left, right;
  for (int64_t first = 0; first < a.entry->elements(); first += chunk) {
    left.resize(static_cast<size_t>(std::min(chunk, a.entry->elements() - first)));
    right.resize(left.size());
    a.file->read_floats(*a.entry, first, left);
    b.file->read_floats(*b.entry, first, right);
    if (std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) != 0) return false;
  }
  return true;
}

void read_box(const HfSource::Place& place, const HfTensor& tensor, const HfPart& part,
              const NamedTensor& wanted, Ops& ops) {
  std::vector<float> column;
  for_each_row_block(part.shape, wanted.box, [&](const RowBlock& block, std::span<float> values) {
    if (!tensor.transposed && block.columns == block.inputs) {
      place.file->read_floats(*place.entry, (part.first_row + block.first_row) * block.inputs,
                              values);
    } else if (!tensor.transposed) {
      for (int64_t r = 0; r < block.rows; ++r)
        place.file->read_floats(
            *place.entry,
            (part.first_row + block.first_row + r) * block.inputs + block.first_column,
            values.subspan(static_cast<size_t>(r * block.columns),
                           static_cast<size_t>(block.columns)));
    } else {
      column.resize(static_cast<size_t>(block.rows));
      for (int64_t c = 0; c < block.columns; ++c) {
        place.file->read_floats(
            *place.entry,
            (block.first_column + c) * tensor.outputs() + part.first_row + block.first_row, column);
        for (int64_t r = 0; r < block.rows; ++r)
          values[static_cast<size_t>(r * block.columns + c)] = column[static_cast<size_t>(r)];
      }
    }
    ops.upload(values.data(), wanted.data.range(block.offset, block.rows * block.columns));
  });
}

}  // namespace

std::vector<std::string> import_hf(const std::filesystem::path& folder, const ModelConfig& config,
                                   std::span<const NamedTensor> weights, Ops& ops) {
  const HfSource source(folder);
  const std::vector<HfTensor> tensors = hf_tensors(config);
  const Places places = match_places(folder, source, config, tensors);
  std::vector<std::string> warnings = source.warnings();
  const auto head = places.find("lm_head.weight");
  if (config.tied && head != places.end() &&
      !same_values(head->second, places.at(tensors.front().name)))
    warnings.push_back(fmt::format(
        "'{}' holds a lm_head.weight that differs from the token embedding, but the config ties "
        "them; the embedding is used and lm_head.weight is dropped",
        folder.string()));

  const WeightsByName wanted = by_name(weights);
  size_t filled = 0;
  for (const HfTensor& tensor : tensors)
    for (const HfPart& part : tensor.parts) {
      const auto [begin, end] = wanted.equal_range(part.name);
      for (auto at = begin; at != end; ++at, ++filled) {
        expect(at->second->shape == part.shape, "the weight has the config's shape");
        read_box(places.at(tensor.name), tensor, part, *at->second, ops);
      }
    }
  expect(filled == weights.size(), "every weight is a parameter of the config");
  return warnings;
}

}  // namespace rankine

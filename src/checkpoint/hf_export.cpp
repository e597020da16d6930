#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "checkpoint/hf_box.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/hf_model.h"
#include "checkpoint/hf_names.h"
#include "checkpoint/json.h"
#include "checkpoint/pending_folder.h"
#include "checkpoint/run_checkpoints.h"
#include "checkpoint/safetensors.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;
constexpr const char* producer = "rankine";  // marks our own exports, which may be replaced

struct Shard {
  std::string name;
  std::vector<const HfTensor*> tensors;
  uint64_t bytes = 0;
};

std::vector<Shard> cut_shards(const std::vector<HfTensor>& tensors, const HfExport& options) {
  std::vector<Shard> shards(1);
  for (const HfTensor& tensor : tensors) {
    const auto bytes = static_cast<uint64_t>(tensor.shape.elements() * dtype_bytes(options.dtype));
    if (!shards.back().tensors.empty() && shards.back().bytes + bytes > options.max_shard_bytes)
      shards.emplace_back();
    shards.back().tensors.push_back(&tensor);
    shards.back().bytes += bytes;
  }
  for (size_t i = 0; i < shards.size(); ++i)
    shards[i].name = shards.size() == 1
                         ? "model.safetensors"
                         : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
  return shards;
}

void require_in_range(std::span<const float> values, DType dtype, const std::string& name) {
  if (dtype == DType::f32) return;
  for (const float value : values) {
    const float rounded =
        dtype == DType::f16 ? to_float(from_float<F16>(value)) : to_float(from_float<Bf16>(value));
    require(std::isfinite(rounded) || !std::isfinite(value), ErrorKind::data,
            "parameter '{}' has the value {}, which {} cannot hold; export as f32", name, value,
            dtype_name(dtype));
  }
}

// Where one official tensor goes.
struct Target {
  SafetensorsWriter& writer;
  size_t index;
  const HfTensor& tensor;
};

void write_box(const Target& to, const HfPart& part, const NamedTensor& weight, DType dtype,
               Ops& ops) {
  std::vector<float> column;
  for_each_row_block(part.shape, weight.box, [&](const RowBlock& block, std::span<float> values) {
    ops.download(weight.data.range(block.offset, block.rows * block.columns), values.data());
    require_in_range(values, dtype, part.name);
    const int64_t row = part.first_row + block.first_row;
    if (!to.tensor.transposed && block.columns == block.inputs) {
      to.writer.write_floats(to.index, row * block.inputs, values);
    } else if (!to.tensor.transposed) {
      for (int64_t r = 0; r < block.rows; ++r)
        to.writer.write_floats(to.index, (row + r) * block.inputs + block.first_column,
                               values.subspan(static_cast<size_t>(r * block.columns),
                                              static_cast<size_t>(block.columns)));
    } else {
      column.resize(static_cast<size_t>(block.rows));
      for (int64_t c = 0; c < block.columns; ++c) {
        for (int64_t r = 0; r < block.rows; ++r)
          column[static_cast<size_t>(r)] = values[static_cast<size_t>(r * block.columns + c)];
        to.writer.write_floats(to.index, (block.first_column + c) * to.tensor.outputs() + row,
                               column);
      }
    }
  });
}

void write_part(const Target& to, const HfPart& part, const WeightsByName& weights, DType dtype,
                Ops& ops) {
  const auto [begin, end] = weights.equal_range(part.name);
  std::vector<const NamedTensor*> written;
  int64_t elements = 0;
  for (auto at = begin; at != end; ++at) {
    const NamedTensor& weight = *at->second;
    expect(weight.shape == part.shape, "the weight has the config's shape");
    // A tied matrix can be listed by both its users.
    const bool repeated =
        std::any_of(written.begin(), written.end(),
                    [&](const NamedTensor* other) { return other->box == weight.box; });
    if (repeated) continue;
    write_box(to, part, weight, dtype, ops);
    written.push_back(&weight);
    elements += volume(weight.box);
  }
  expect(elements == part.shape.elements(), "the boxes tile the parameter");
}

void write_shard(const fs::path& folder, const Shard& shard, const WeightsByName& weights,
                 DType dtype, Ops& ops) {
  std::vector<SafetensorsTensor> listed;
  for (const HfTensor* tensor : shard.tensors)
    listed.push_back({tensor->name, dtype, tensor->shape});
  SafetensorsWriter writer(folder / shard.name, listed, {{"producer", producer}});
  for (size_t i = 0; i < shard.tensors.size(); ++i)
    for (const HfPart& part : shard.tensors[i]->parts)
      write_part({writer, i, *shard.tensors[i]}, part, weights, dtype, ops);
  writer.finish();
}

std::string index_text(const std::vector<Shard>& shards) {
  uint64_t total = 0;
  nlohmann::json map;
  for (const Shard& shard : shards) {
    total += shard.bytes;
    for (const HfTensor* tensor : shard.tensors) map[tensor->name] = shard.name;
  }
  const nlohmann::json index{{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  return index.dump(2) + "\n";
}

bool is_own_weights(const fs::path& file) {
  try {
    const SafetensorsFile weights(file);
    const auto at = weights.metadata().find("producer");
    return at != weights.metadata().end() && at->second == producer;
  } catch (const Error&) {
    return false;
  }
}

// An earlier export, or an empty folder.
void require_replaceable(const fs::path& folder, const HfExport& options) {
  bool has_own_weights = false, empty = true;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool own = entry.path().extension() == ".safetensors" && is_own_weights(entry.path());
    has_own_weights |= own;
    empty = false;
    require(
        own || is_carried_name(name) || options.extra_files.contains(name), ErrorKind::usage,
        "'{}' is not empty and holds '{}', which no earlier export wrote; choose another folder",
        folder.string(), name);
  }
  require(empty || has_own_weights, ErrorKind::usage,
          "'{}' is not empty and is no earlier export; choose another folder", folder.string());
}

}  // namespace

void export_hf(const fs::path& folder, const ModelConfig& config,
               std::span<const NamedTensor> weights, const HfExport& options, Ops& ops) {
  const bool known =
      options.dtype == DType::f32 || options.dtype == DType::bf16 || options.dtype == DType::f16;
  require(known, ErrorKind::usage, "weights are exported as f32, bf16 or f16, not {}",
          dtype_name(options.dtype));
  const std::string config_text = hf_config_text(config, options.dtype);
  // The model's own generation_config.json says more than what can be told from the config.
  const bool has_own = options.extra_files.contains("generation_config.json");
  const std::string generation_text = has_own ? "" : hf_generation_config_text(config);
  const std::vector<HfTensor> tensors = hf_tensors(config);
  const std::vector<Shard> shards = cut_shards(tensors, options);
  const WeightsByName named = by_name(weights);

  PendingFolder pending(folder,
                        [&](const fs::path& there) { require_replaceable(there, options); });
  for (const Shard& shard : shards) write_shard(pending.path(), shard, named, options.dtype, ops);
  if (shards.size() > 1)
    write_text_atomically(pending.path() / "model.safetensors.index.json", index_text(shards));
  write_text_atomically(pending.path() / "config.json", config_text);
  if (!generation_text.empty())
    write_text_atomically(pending.path() / "generation_config.json", generation_text);
  for (const auto& [name, text] : options.extra_files)
    write_text_atomically(pending.path() / name, text);
  pending.commit();
}

}  // namespace rankine

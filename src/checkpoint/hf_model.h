#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/config.h"
#include "ops/ops.h"
#include "tensor/named_tensor.h"

// Weights in Hugging Face's folder layout. Rule: official names, shapes and orientation outside,
// this program's parameters inside; host memory stays within some MiB.
namespace rankine {

// Fills the given f32 boxes from model.safetensors or its shards, after checking that the files
// hold the config's tensors and no others. Returns warnings for the user. Error{data} names what is
// missing, unknown or of another shape.
std::vector<std::string> import_hf(const std::filesystem::path& folder, const ModelConfig& config,
                                   std::span<const NamedTensor> weights, Ops& ops);

struct HfExport {
  DType dtype = DType::bf16;  // or f32, f16
  uint64_t max_shard_bytes = 5'000'000'000;
  std::map<std::string, std::string> extra_files = {};  // name -> text, e.g. tokenizer.json
};
// Writes config.json, generation_config.json and the weights (f32 boxes that tile every parameter)
// so that `folder` appears complete or not at all. A non-empty folder is replaced only when it is
// an earlier export, else Error{usage}. Error{data} for values the dtype cannot hold.
void export_hf(const std::filesystem::path& folder, const ModelConfig& config,
               std::span<const NamedTensor> weights, const HfExport& options, Ops& ops);

}  // namespace rankine

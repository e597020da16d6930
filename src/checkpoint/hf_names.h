#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "tensor/shape.h"

// The tensors of a model in Hugging Face's files: official names, shapes, and the parameters of
// this program that each of them consists of.
namespace rankine {

struct HfPart {
  std::string name;       // of the parameter, e.g. "layers.0.attention.k.weight"
  Shape shape;            // [outputs, inputs] or [outputs]
  int64_t first_row = 0;  // where its outputs begin among the tensor's
};

struct HfTensor {
  std::string name;         // "transformer.h.0.attn.c_attn.weight"
  Shape shape;              // as stored: [inputs, outputs] when transposed
  bool transposed = false;  // GPT-2's linear layers
  std::vector<HfPart> parts;
  int64_t outputs() const { return shape[transposed ? 1 : 0]; }
};

// In the order of the model's blocks; a tied head is not among them.
std::vector<HfTensor> hf_tensors(const ModelConfig& config);
// The official name for one found in a file: they are met with and without the prefix of the model
// without its head, "transformer." or "model.".
std::string official_hf_name(const ModelConfig& config, std::string_view name);
// Where an element of one of this program's parameters is in the official files.
struct HfPlace {
  std::string name;
  std::vector<int64_t> index;
};
HfPlace hf_place(const ModelConfig& config, std::string_view parameter, std::vector<int64_t> index);
// Buffers that old files store and nobody needs: attention masks, rotary frequencies.
bool is_ignored_hf_name(const ModelConfig& config, std::string_view name);

}  // namespace rankine

#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "cases.h"
#include "checkpoint/hf_names.h"

// A model's recorded batches and AdamW run, and its parameters as their official names have them.
namespace rankine::test {

struct Batches {
  int64_t steps = 0, batch = 0, tokens = 0;
  std::vector<std::vector<int32_t>> ids, targets;  // per step
};

// Whole tensors by this program's names.
using WholeTensors = std::map<std::string, std::vector<float>>;

// One tensor as its official name and orientation want it.
inline std::vector<float> assembled(const HfTensor& hf, const WholeTensors& tensors) {
  std::vector<float> out(static_cast<size_t>(hf.shape.elements()));
  for (const HfPart& part : hf.parts) {
    const std::vector<float>& values = tensors.at(part.name);
    const int64_t rows = part.shape[0], columns = part.shape.elements() / rows;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t row = part.first_row + r;
        const int64_t place = hf.transposed ? c * hf.outputs() + row : row * columns + c;
        out[static_cast<size_t>(place)] = values[static_cast<size_t>(r * columns + c)];
      }
  }
  return out;
}

class GoldenModelCase : public GoldenCase {
 protected:
  bool open() {
    if (!open_case("models")) return false;
    file.emplace(folder / "golden.safetensors");
    const SafetensorsEntry* entry = file->find("tokens");
    batches.steps = entry->shape[0];
    batches.batch = entry->shape[1];
    batches.tokens = entry->shape[2] - 1;
    const std::vector<int64_t> tokens = read_raw<int64_t>(*file, "tokens");
    auto at = tokens.begin();
    for (int64_t s = 0; s < batches.steps; ++s) {
      std::vector<int32_t>&ids = batches.ids.emplace_back(), &next = batches.targets.emplace_back();
      for (int64_t b = 0; b < batches.batch; ++b, ++at)
        for (int64_t t = 0; t < batches.tokens; ++t, ++at) {
          ids.push_back(static_cast<int32_t>(*at));
          next.push_back(static_cast<int32_t>(at[1]));
        }
    }
    return true;
  }

  MicroShape shape() const { return {batches.batch, batches.tokens}; }

  OptimizerOptions optimizer(double clip) const {
    const Json& adamw = golden["adamw"];
    OptimizerOptions o;
    o.beta1 = adamw["betas"][0];
    o.beta2 = adamw["betas"][1];
    o.epsilon = adamw["eps"];
    o.weight_decay = adamw["weight_decay"];
    o.clip_grad = clip;
    return o;
  }

  void check_gradients(const WholeTensors& gradients) {
    for (const HfTensor& hf : hf_tensors(config)) {
      const std::vector<float> expected = read_raw<float>(*file, "grad." + hf.name);
      EXPECT_LE(largest_difference(assembled(hf, gradients), expected),
                1e-4 * largest(expected) + 1e-6)
          << hf.name;
    }
  }

  void check_parameters(const WholeTensors& weights, const Json& expected) const {
    for (const HfTensor& hf : hf_tensors(config)) {
      ASSERT_TRUE(expected.contains(hf.name)) << hf.name;
      const Json& e = expected[hf.name];
      const std::vector<float> values = assembled(hf, weights);
      double squares = 0;
      for (const float v : values) squares += static_cast<double>(v) * static_cast<double>(v);
      EXPECT_NEAR(std::sqrt(squares), e["norm"].get<double>(),
                  1e-4 * e["norm"].get<double>() + 1e-4)
          << hf.name;
      const double noise = 4 * e["noise_maxabs"].get<double>() + 2e-5;
      for (size_t i = 0; i < e["first"].size(); ++i)
        EXPECT_NEAR(values[i], e["first"][i].get<double>(), noise) << hf.name << " " << i;
      const size_t last = e["last"].size();
      for (size_t i = 0; i < last; ++i)
        EXPECT_NEAR(values[values.size() - last + i], e["last"][i].get<double>(), noise) << hf.name;
    }
  }

  std::optional<SafetensorsFile> file;
  Batches batches;
};

}  // namespace rankine::test

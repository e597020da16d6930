#include "model/layer_part.h"

#include <algorithm>

namespace rankine {
namespace {

void append(const std::vector<TensorSpec>& specs, std::vector<TensorSpec>& to,
            std::vector<size_t>& indices) {
  for (const TensorSpec& spec : specs) {
    indices.push_back(to.size());
    to.push_back(spec);
  }
}

// Parts that name the same scratch use it one after the other.
void share(const std::vector<TensorSpec>& specs, std::vector<TensorSpec>& to,
           std::vector<size_t>& indices) {
  for (const TensorSpec& spec : specs) {
    const auto same = std::find_if(to.begin(), to.end(),
                                   [&](const TensorSpec& t) { return t.name == spec.name; });
    indices.push_back(static_cast<size_t>(same - to.begin()));
    if (same == to.end())
      to.push_back(spec);
    else
      expect(same->shape == spec.shape && same->dtype == spec.dtype,
             "shared scratch has one shape and dtype");
  }
}

}  // namespace

std::vector<PartIndices> join_parts(std::span<const PartTensors> parts, Recompute recompute,
                                    BlockDescription& d) {
  const auto remakes = [&](const SavedTensor& t) {
    return t.remade != Recompute::none && t.remade <= recompute;
  };
  std::vector<PartIndices> out(parts.size());
  for (const PartTensors& part : parts)
    for (const SavedTensor& t : part.saved) (remakes(t) ? d.recomputed : d.saved).push_back(t.spec);
  size_t kept = 0, remade = d.saved.size();
  for (size_t p = 0; p < parts.size(); ++p) {
    for (const SavedTensor& t : parts[p].saved)
      out[p].saved.push_back(remakes(t) ? remade++ : kept++);
    append(parts[p].pending, d.pending, out[p].pending);
    share(parts[p].forward_scratch, d.forward_scratch, out[p].forward_scratch);
    share(parts[p].backward_scratch, d.backward_scratch, out[p].backward_scratch);
  }
  return out;
}

}  // namespace rankine

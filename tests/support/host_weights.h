#pragma once
#include <deque>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "model/param_spec.h"
#include "tensor/named_tensor.h"

// f32 tensors in plain host memory, for tests of what reads and writes them.
namespace rankine::test {

class HostTensors {
 public:
  // A box of the tensor `name`, zero at first.
  Tensor add(const std::string& name, const Shape& shape, const Box& box) {
    std::vector<float>& values = memory_.emplace_back(static_cast<size_t>(volume(box)));
    const Tensor data{values.data(), DType::f32, extent(box), DeviceKind::cpu};
    list_.push_back({name, shape, box, data});
    return data;
  }
  std::span<const NamedTensor> list() const { return list_; }
  std::span<float> values(size_t i) { return memory_[i]; }
  bool operator==(const HostTensors& other) const { return memory_ == other.memory_; }

  template <class Draw>
  void fill(Draw&& draw) {
    for (std::vector<float>& values : memory_)
      for (float& value : values) value = draw();
  }

 private:
  std::deque<std::vector<float>> memory_;
  std::vector<NamedTensor> list_;
};

// All parameters of a model, whole.
inline HostTensors whole_weights(const ModelConfig& config) {
  HostTensors out;
  for (const ParamSpec& spec : model_parameters(config))
    out.add(spec.name, spec.shape, whole(spec.shape));
  return out;
}

inline HostTensors random_weights(const ModelConfig& config, uint64_t seed) {
  HostTensors out = whole_weights(config);
  std::mt19937_64 random(seed);
  out.fill([&] {
    return static_cast<float>(static_cast<int64_t>(random() >> 40) - (1 << 23)) * 0x1p-22f;
  });
  return out;
}

}  // namespace rankine::test

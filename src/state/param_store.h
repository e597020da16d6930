#pragma once
#include <span>
#include <string>
#include <vector>

#include "model/block.h"
#include "tensor/arena.h"
#include "tensor/named_tensor.h"

namespace rankine {

enum class Purpose : uint8_t { inference, training };

// The model states of one rank in flat buffers that share one table of offsets: weights (f32
// master), the compute dtype's copy of them (the same memory when that is f32), and for training
// gradients, momentum and variance (f32). A block is one contiguous range, matrices first; each
// group of joined parameters starts at a multiple of 64 elements. Padding stays zero.
class ParamStore {
 public:
  ParamStore(std::span<const BlockDescription> blocks, DType compute, Purpose purpose);

  void add_to(MemoryPlan& plan) const;
  void bind(Arena& arena);  // must come before everything below

  // Every weight from (seed, its name, its global index): the same for every layout.
  void initialise(Ops& ops, uint64_t seed);
  // Rounds the weights into the compute copy; needed after writing to weights().
  void refresh_compute(Ops& ops);

  // Views in the order a block's BlockRun wants them.
  std::span<const Tensor> params(size_t block) const { return blocks_[block].params; }
  std::span<const Tensor> grads(size_t block) const { return blocks_[block].grads; }

  // Logical tensors (no padding), by global name.
  std::vector<NamedTensor> weights() const { return named(weights_); }
  std::vector<NamedTensor> gradients() const { return named(gradients_); }
  std::vector<NamedTensor> momentum() const { return named(momentum_); }
  std::vector<NamedTensor> variance() const { return named(variance_); }

  // total f64 [1] = sum of the squares of all gradients; a tied weight counts once.
  void sum_squared_gradients(Ops& ops, Tensor total) const;
  // One optimizer step over everything owned; weight decay only where ParamSpec::decay says so.
  void update(Ops& ops, const AdamWStep& step);

  int64_t elements() const { return elements_; }  // with padding

 private:
  struct Entry {
    ParamSpec spec;
    int64_t offset;
  };
  struct Range {
    int64_t first, count;
    bool decay;
  };
  struct BlockViews {
    std::vector<size_t> groups;  // indices into groups_
    std::vector<Tensor> params, grads;
  };
  void lay_out(std::span<const ParamSpec> specs, BlockViews& views);
  std::vector<NamedTensor> named(const Tensor& flat) const;

  DType compute_;
  Purpose purpose_;
  int64_t elements_ = 0;
  std::vector<Entry> entries_, groups_;
  std::vector<Range> ranges_;
  std::vector<BlockViews> blocks_;
  Tensor weights_, computed_, gradients_, momentum_, variance_;
};

}  // namespace rankine

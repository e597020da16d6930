#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "inference/generator.h"
#include "runtime/trainer.h"
#include "support/backend.h"

// A model ready to train or to infer, for tests of whole steps.
namespace rankine::test {

struct Training {
  struct Setup {
    MicroShape shape{2, 16};
    int micros = 1;
    DType compute = DType::f32;
    OptimizerOptions optimizer = {};
    int threads = 2;
    std::string program = {};  // as text; empty: accumulation
    uint64_t seed = 7;
  };

  Training(const ModelConfig& config, const Setup& setup)
      : ops(make_test_ops(setup.threads)),
        program(setup.program.empty() ? accumulation_program(setup.micros)
                                      : parse_program(setup.program)),
        engine(*ops, config,
               {.shape = setup.shape,
                .compute = setup.compute,
                .purpose = Purpose::training,
                .positions = setup.shape.tokens},
               {.schedule = one_stage(program)}) {
    engine.allocate();
    engine.store().initialise(setup.seed);
    trainer = std::make_unique<Trainer>(
        engine, Trainer::Setup{setup.optimizer, 1000, setup.seed, setup.compute == DType::f16});
  }

  std::unique_ptr<Ops> ops;
  Program program;
  Engine engine;
  std::unique_ptr<Trainer> trainer;
};

inline std::vector<int32_t> random_ids(size_t count, int64_t vocabulary, uint64_t seed) {
  std::vector<int32_t> ids(count);
  for (size_t i = 0; i < count; ++i)
    ids[i] = static_cast<int32_t>(philox(random_key(seed, "test ids"), i)[0] %
                                  static_cast<uint64_t>(vocabulary));
  return ids;
}

inline std::vector<float> host_copy(Ops& ops, const Tensor& tensor) {
  std::vector<float> out(static_cast<size_t>(tensor.elements()));
  std::vector<std::byte> raw;
  download_floats(ops, tensor, raw, out);
  return out;
}

}  // namespace rankine::test

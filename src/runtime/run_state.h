#pragma once
#include <string>

#include "model/config.h"
#include "runtime/trainer.h"

namespace rankine {

// What a checkpoint keeps beside tensors; everything else of a run is a function of these and the
// configuration. Stored as the manifest's `state`.
struct RunState {
  int64_t step = 0;    // finished steps
  int64_t tokens = 0;  // valid tokens seen
  Trainer::State trainer;
  ModelConfig model;
  std::string tokenizer;      // TextTokenizer::identity(), or "" when it is not known
  std::string data_identity;  // of the corpus, compared at resume
  std::string configuration;  // TOML of the resolved options
};

std::string run_state_text(const RunState& state);                           // a JSON object
RunState parse_run_state(const std::string& text, const std::string& what);  // Error{data}

}  // namespace rankine

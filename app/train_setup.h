#pragma once
#include <filesystem>
#include <string>

#include "base/options.h"
#include "command.h"
#include "data/options.h"
#include "data/token_source.h"
#include "model/config.h"
#include "model_source.h"
#include "runtime/options.h"
#include "state/optimizer.h"

namespace rankine {

// All that a user can say about a training run.
struct TrainOptions {
  std::string model = "tiny";
  bool from_scratch = false;
  DataOptions data;
  RunOptions run;
  OptimizerOptions optimizer;
  ParallelOptions parallel;
};
void declare_options(OptionTable& table, TrainOptions& options);

// Parses; with --resume the run's stored configuration takes the place of the defaults. Returns
// false when --help was asked for and printed.
bool parse_train_options(OptionTable& table, TrainOptions& options, const Arguments& arguments);

// The model to train: its vocabulary follows the data where only a shape was asked for.
ModelConfig training_config(const TrainOptions& options, const ModelSource& source,
                            const TokenData& data);
// The run's folder: --output, or the first free runs/MODEL-N; refuses one that holds a run unless
// it is resumed, and makes it.
std::filesystem::path prepare_output(const TrainOptions& options);

// A short text that changes when the corpus does: its length and a hash of tokens spread over it.
std::string data_identity(const TokenData& data);

}  // namespace rankine

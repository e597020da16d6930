#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/options.h"
#include "data/options.h"
#include "data/text_tokenizer.h"
#include "library/model_source.h"
#include "library/run_folder.h"
#include "model/config.h"
#include "options/parallel_options.h"
#include "options/run_options.h"
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
  std::vector<std::string> warnings;    // about the options themselves
  std::optional<StoredRun> stored;      // a resumed run's
  std::filesystem::path run_tokenizer;  // its own, unless --tokenizer is given anew
};
void declare_options(OptionTable& table, TrainOptions& options);

// Parses; with --resume the run's stored configuration takes the place of the defaults. Returns
// false when --help was asked for and printed.
bool parse_train_options(OptionTable& table, TrainOptions& options,
                         const CommandArguments& arguments);

// Derives what options leave to others, and refuses those that contradict each other or have no
// effect beside the others, Error{usage}.
void settle(TrainOptions& options, const OptionTable& table);

// The model to train: its vocabulary follows the tokenizer (null: none known) where only a shape
// was asked for.
ModelConfig training_config(const TrainOptions& options, const ModelSource& source,
                            const TextTokenizer* tokenizer);
// So that the stored configuration works from any folder.
void make_paths_absolute(DataOptions& options);

}  // namespace rankine

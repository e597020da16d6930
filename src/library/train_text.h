#pragma once
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "library/model_source.h"
#include "library/train_data.h"
#include "library/train_setup.h"

namespace rankine {

// What a run's text is made with and what it teaches about the ends of texts.
struct TrainingText {
  std::optional<TextTokenizer> tokenizer;  // with the template of its conversations among its files
  std::vector<int32_t> taught_ends;  // tokens behind documents or replies, as they are learned
  std::vector<std::string> warnings;
};
TrainingText training_text(const TrainOptions& options, const ModelSource& source,
                           const DataSource& data);

// The files that a run's checkpoints and exports carry beside weights: the tokenizer's, and the
// source's generation_config.json with the ends that were taught.
ExtraFiles run_files(const TrainingText& text, const ModelSource& source, bool from_scratch);

}  // namespace rankine

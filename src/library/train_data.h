#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "data/corpus.h"
#include "data/sample_order.h"
#include "library/model_source.h"
#include "library/ranks.h"
#include "library/train_setup.h"

namespace rankine {

// What --data names, before any of it is read: the files of each corpus and its weight.
struct DataSource {
  std::vector<std::vector<DataFile>> corpora;
  std::vector<double> weights;

  std::vector<DataFile> files() const;  // of all corpora
  bool holds_text() const { return corpora.front().front().holds_text(); }
};
DataSource find_data(const DataOptions& options);

// The tokenizer of the run: --tokenizer, that of token files, the model's own, or bytes; none for
// token files that do not say. Error{usage} or {data} when two of them contradict each other.
std::optional<TextTokenizer> training_tokenizer(const TrainOptions& options,
                                                const ModelSource& source, const DataSource& data);

// The corpora ready to be read and which windows of them are trained on when.
struct TrainingData {
  std::vector<Corpus> corpora;
  SampleMix mix;

  uint64_t tokens() const;
  size_t files() const;
  std::vector<std::string> warnings() const;
  // A short text that changes with any token of the corpora.
  std::string identity() const;
  // The same in the form of a stored one: earlier versions hashed some of the tokens alone.
  std::string identity_like(const std::string& stored) const;
};
// Makes token files of text where that is needed, by the first rank of each host, and opens them.
// All ranks call it together and end up with the same data, else Error{data}.
TrainingData open_data(const TrainOptions& options, const DataSource& source,
                       const std::optional<TextTokenizer>& tokenizer, const Rank& rank,
                       Communicator& ranks, Log& log);

}  // namespace rankine

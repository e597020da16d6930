#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/data_files.h"
#include "data/text_tokenizer.h"
#include "data/token_file.h"

// Text files to one token file, in parallel over pieces of documents and in bounded memory. The
// bytes written depend on the text, the tokenizer and the settings alone.
namespace rankine {

struct TokenizeJob {
  std::vector<DataFile> files;  // of text; of instructions all or none
  std::string text_field;
  double bad_lines = 0;
  TextTokenizer tokenizer;
  int32_t end_token = -1;         // behind each document; -1: of samples with a chat template
  InstructionFormat format = {};  // of instructions

  bool makes_samples() const { return files.front().format == DataFormat::instructions; }
  // tokenizer_config.json as the token file carries it: with the template that made its samples.
  std::string tokenizer_config() const;
};
// As the options say. Error{data} when the tokenizer has no end token or template of that name.
TokenizeJob tokenize_job(std::vector<DataFile> files, const TextOptions& options,
                         const TextTokenizer& tokenizer);

struct TokenizeProgress {
  uint64_t bytes = 0, total_bytes = 0;  // of the files, as they lie on disk
  uint64_t tokens = 0, documents = 0;
};

// Fills and finishes `output`; returns what its header says. `report` is called from several
// threads, one at a time. Error{data} for damaged files and too many bad lines.
TokenFileFacts tokenize(const TokenizeJob& job, TokenFileWriter& output, int threads,
                        const std::function<void(const TokenizeProgress&)>& report);

// A text that changes when the job's result would: names, sizes, times and parts of the contents
// of its files, the tokenizer and the settings.
std::string job_key(const TokenizeJob& job);

}  // namespace rankine

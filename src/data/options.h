#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/options.h"
#include "data/byte_stream.h"
#include "data/instructions.h"

// What a user says about training data.
namespace rankine {

// `automatic` tells files apart by their contents and refuses to guess between raw_u16 and raw_u32.
enum class DataFormat : uint8_t {
  automatic,
  text,
  jsonl,
  instructions,  // JSON lines of conversations
  tokens,        // Rankine's own
  raw_u16,
  raw_u32,
  llmc,
  megatron
};

// How text files become documents.
struct TextOptions {
  std::vector<std::filesystem::path> data = {};  // files, folders (recursive) and globs
  DataFormat format = DataFormat::automatic;
  std::string text_field = "text";         // of JSON lines
  double bad_lines = 0.01;                 // of a file's JSON lines: more are an error
  double max_expansion = usual_expansion;  // of compressed files
  ConversationFields conversation = {};
  ChatTemplateChoice chat = {};  // its name "": the tokenizer's own, if it has one; "none"
};

struct DataOptions {
  TextOptions text;
  std::string tokenizer;               // "bytes", a path, or "": the model's own, otherwise bytes
  std::string begin_token, end_token;  // of documents; "": the tokenizer's own
  std::string weights;                 // "0.7,0.3", one for each path; "": one corpus of all paths
  std::filesystem::path cache;         // folder of token files made from text; "": beside the run
  bool document_mask = false;          // attention stays within documents
  double validation_fraction = 0.01;   // of the windows, the last ones; 0: none
};

// --data, --data-format, --text-field, --bad-lines, --max-expansion.
void declare_options(OptionTable& table, TextOptions& options);
// The fields of conversations, --chat-template and --chat-template-kwargs.
void declare_instruction_options(OptionTable& table, TextOptions& options);
// --begin-token.
void declare_begin_token(OptionTable& table, std::string& begin_token);
// --tokenizer, --begin-token and --end-token.
struct TokenizerOptions {
  std::string& tokenizer;
  std::string& begin_token;
  std::string& end_token;
};
void declare_tokenizer_options(OptionTable& table, const TokenizerOptions& options);
// --chat-template-kwargs.
void declare_chat_kwargs(OptionTable& table, std::string& kwargs);
// --document-mask.
void declare_document_mask(OptionTable& table, bool& document_mask);
void declare_options(OptionTable& table, DataOptions& options);

}  // namespace rankine

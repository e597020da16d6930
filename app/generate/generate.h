#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/chat/chat_tokens.h"
#include "data/text_stream.h"
#include "inference/generator.h"
#include "library/text_bounds.h"
#include "library/text_model.h"
#include "options/run_options.h"

namespace rankine {

struct GenerateOptions {
  TextModelOptions source;
  std::string system;
  ChatTemplateChoice template_choice;
  std::vector<std::string> prompts, prompt_ids, stops;
  std::vector<std::filesystem::path> prompt_files;
  bool parse_special = false, chat = false, json = false;
  int64_t max_tokens = 256, samples = 1, batch_size = 8, context = 0, threads = 0;
  std::string device = "cpu";
  std::string instruction_set;
  Precision precision = Precision::f32;
  uint64_t memory_limit = 0;
  SamplerOptions sampler;
};

// What turns texts into tokens and back; without a tokenizer there are only ids.
struct TextTools {
  std::optional<TextTokenizer> text;
  const BpeTokenizer* tokenizer = nullptr;  // its
  std::optional<ChatTemplate> chat;
  std::vector<std::string> stops;  // the user's, and the template's
  TextBounds bounds;
  int64_t vocabulary = 0;  // of the model
};

// What to continue: a text, a conversation, or ids.
struct Prompt {
  std::string text;
  Conversation conversation;  // empty for a text
  std::vector<int32_t> ids;
  std::string place = {};  // "'FILE' line 3", for messages; "" on the command line

  bool is_chat() const { return !conversation.messages.empty(); }
};
// "PLACE: " as what a message begins with, "" for none.
std::string before(const std::string& place);

// Whether lines are read from standard input as a conversation.
bool is_interactive(const GenerateOptions& options);
// The prompts of the command line and of files, without ids yet.
std::vector<Prompt> read_prompts(const GenerateOptions& options);
// The ids of a prompt; a text is begun as the tokenizer begins texts. `chat` may be null where no
// prompt is a conversation.
std::vector<int32_t> encode_prompt(const Prompt& prompt, const GenerateOptions& options,
                                   const TextTools& tools, ChatEncoder* chat);

// Refuses ids that the model does not have; `place` is where the prompt is from.
void check_prompt_ids(const std::vector<int32_t>& ids, int64_t vocabulary,
                      const std::string& place);

// A text that was written, as a line of JSON.
struct Record {
  const Prompt& prompt;
  uint64_t sample = 0;
  std::string text = {};
  std::string unfinished = {};  // behind it, the beginning of a character
  std::vector<int32_t> tokens = {};
  TextEnd end = TextEnd::length;
};
std::string json_line(const Record& record, bool has_text);
// Its text with U+FFFD for bytes that form no character.
std::string shown_text(const Record& record);

// Prints, and ends the program with an error when nobody can read it.
void print_out(std::string_view text);

// Reads what a user says line by line and prints the replies until the lines end. `positions` is
// how many tokens the conversation may have. Ctrl-C at a terminal ends a reply, any other signal
// the conversation. Returns the exit code.
struct Chat {
  const GenerateOptions& options;
  const TextTools& tools;
  ChatEncoder& encoder;
};
int converse(const Chat& chat, Generator& generator, int64_t positions, Log& log);

}  // namespace rankine

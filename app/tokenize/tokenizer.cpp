#include <algorithm>
#include <array>
#include <cstdio>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "command.h"
#include "data/data_checks.h"
#include "data/document_reader.h"
#include "data/text_report.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/bpe_trainer.h"
#include "library/model_source.h"
#include "standard_input.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

void write_out(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  require(std::fflush(stdout) == 0, ErrorKind::environment, "cannot write to standard output");
}

BpeTokenizer open_tokenizer(const fs::path& path) {
  require(!path.empty(), ErrorKind::usage,
          "--tokenizer is missing: a tokenizer.json, or a folder with one");
  BpeTokenizer tokenizer = BpeTokenizer::open(path);
  Log log(stderr);
  warn_of(tokenizer, log);
  return tokenizer;
}

// Documents of all files, each whole.
void count_words(const TextOptions& o, const OptionTable& table, BpeTrainer& trainer) {
  std::vector<DataFile> files = list_files(o);
  require(files.front().holds_text() && files.front().format != DataFormat::instructions,
          ErrorKind::data, "'{}' does not hold text; a tokenizer is trained on text",
          files.front().path.string());
  refuse_idle_options(table, files);
  require_distinct(files);
  TextReader reader(files);
  TextReport report(std::move(files), o.bad_lines);
  JsonLines lines;
  Log log(stderr);
  Progress progress(log, "count words of", "bytes", static_cast<double>(reader.total_bytes()));
  for (TextPiece piece; reader.next(piece);) {
    PieceReport one{.file = piece.file, .lines = {}};
    if (piece.is_lines)
      lines.read_field(piece.bytes, o.text_field, one.lines,
                       [&](std::string_view text) { trainer.add(text); });
    else
      trainer.add(piece.bytes);
    report.add(one);
    if (log.terminal()) progress.report(static_cast<double>(piece.bytes_read));
  }
  report.finish();
  for (const std::string& note : report.notes()) warn_line(log, "{}", note);
}

int train(const CommandArguments& arguments) {
  TextOptions text;
  fs::path output;
  int64_t vocabulary = 4096;
  SplitPattern pattern = SplitPattern::gpt2;
  OptionTable table;
  declare_options(table, text);
  table.integer({"vocabulary"}, &vocabulary, "tokens, \"<|endoftext|>\" among them",
                {.least = 257, .most = 1 << 24});
  table.choice({"pattern"}, &pattern,
               {{"gpt2", SplitPattern::gpt2},
                {"llama3", SplitPattern::llama3},
                {"qwen", SplitPattern::qwen}},
               "whose rule cuts text into words");
  table.path({"output"}, &output, "folder to write tokenizer.json and tokenizer_config.json to");
  if (parse_options(table, arguments).help) {
    fmt::print("{}", help_text(table, "rankine tokenizer train", "Learns a vocabulary from text."));
    return 0;
  }
  require(!text.data.empty(), ErrorKind::usage, "--data is missing: files of text");
  require(!output.empty(), ErrorKind::usage, "--output is missing: the folder to write to");
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    require(!is_there(output / name), ErrorKind::usage,
            "'{}' is there already; choose another --output or remove it",
            (output / name).string());
  BpeTrainer trainer(pattern);
  count_words(text, table, trainer);
  const std::string json = trainer.train(vocabulary);
  make_folders(output);
  write_text_atomically(output / "tokenizer_config.json", trainer.config());
  write_text_atomically(output / "tokenizer.json", json);
  fmt::print("{} tokens from {} of text, {} different words; written to '{}'\n", vocabulary,
             format_bytes(trainer.bytes()), trainer.different_words(), output.string());
  return 0;
}

int encode(const CommandArguments& arguments) {
  fs::path path;
  std::string text;
  EncodeOptions options;
  OptionTable table;
  table.path({"tokenizer"}, &path, "a tokenizer.json, or a folder with one");
  table.text({"text"}, &text, "what to encode; without it, standard input");
  table.flag({"add-special"}, &options.add_special, "with what the tokenizer puts around a text");
  table.flag({"parse-special"}, &options.parse_special,
             "read \"<|endoftext|>\" and its like in the text as tokens");
  if (parse_options(table, arguments).help) {
    fmt::print("{}", help_text(table, "rankine tokenizer encode", "Prints the ids of a text."));
    return 0;
  }
  const BpeTokenizer tokenizer = open_tokenizer(path);
  if (table.origin("text") == OptionOrigin::standard) text = standard_input();
  std::string line;
  for (const int32_t id : tokenizer.encode(text, options))
    line += fmt::format("{}{}", line.empty() ? "" : " ", id);
  write_out(line + "\n");
  return 0;
}

TokenIds read_ids(const std::string& text) {
  TokenIds ids;
  constexpr const char* between = " \t\r\n,";
  for (size_t at = text.find_first_not_of(between); at != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(between, at), text.size());
    const std::string word = text.substr(at, end - at);
    size_t used = 0;
    int id = -1;
    try {
      id = std::stoi(word, &used);
    } catch (const std::exception&) {
      used = 0;
    }
    require(used == word.size() && id >= 0, ErrorKind::usage, "'{}' is no token id", word);
    ids.push_back(id);
    at = text.find_first_not_of(between, end);
  }
  return ids;
}

int decode(const CommandArguments& arguments) {
  fs::path path;
  std::vector<std::string> words;
  bool skip_special = false;
  OptionTable table;
  table.path({"tokenizer"}, &path, "a tokenizer.json, or a folder with one");
  table.texts({"ids"}, &words, "what to decode; without them, standard input", "ID");
  table.flag({"skip-special"}, &skip_special, "leave special tokens out of the text");
  if (parse_options(table, arguments).help) {
    fmt::print("{}", help_text(table, "rankine tokenizer decode", "Prints the text of ids."));
    return 0;
  }
  const BpeTokenizer tokenizer = open_tokenizer(path);
  std::string text;
  for (const std::string& word : words) text += word + " ";
  write_out(tokenizer.decode(read_ids(words.empty() ? standard_input() : text), skip_special));
  return 0;
}

}  // namespace

int run_tokenizer(const CommandArguments& arguments) {
  const std::string action = arguments.empty() ? "" : arguments[0];
  if (action == "--help" || action == "-h") {
    fmt::print(
        "Trains and tries tokenizers.\n\nusage: rankine tokenizer train|encode|decode "
        "[OPTIONS]\n\n`rankine tokenizer train --help` lists an action's options.\n");
    return 0;
  }
  const CommandArguments rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  if (action == "train") return train(rest);
  if (action == "encode") return encode(rest);
  if (action == "decode") return decode(rest);
  fail(ErrorKind::usage, "'rankine tokenizer' is followed by train, encode or decode, not '{}'",
       action);
}

}  // namespace rankine

#include "base/text.h"
#include "command.h"
#include "data/token_source.h"
#include "make_tokens.h"
#include "model_source.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

struct TokenizeOptions {
  TextOptions text;
  std::string tokenizer, end_token;
  fs::path output;
  int64_t threads = 0;
};

OptionTable declare(TokenizeOptions& o) {
  OptionTable table;
  declare_options(table, o.text);
  declare_instruction_options(table, o.text);
  declare_tokenizer_options(table, o.tokenizer, o.end_token);
  table.path({"output"}, &o.output, "the token file to write");
  table.integer({"threads"}, &o.threads, "to tokenize with; 0: one for each processor",
                {.least = 0, .most = 4096});
  return table;
}

}  // namespace

int run_tokenize(const Arguments& arguments) {
  TokenizeOptions o;
  OptionTable table = declare(o);
  if (parse_options(table, arguments).help) {
    fmt::print("{}", help_text(table, "rankine tokenize",
                               "Makes a token file of text, to train on it with `rankine train "
                               "--data FILE`."));
    return 0;
  }
  require(!o.text.data.empty(), ErrorKind::usage, "--data is missing: files of text");
  require(!o.tokenizer.empty(), ErrorKind::usage,
          "--tokenizer is missing: bytes, a tokenizer.json, or a folder with one");
  require(!o.output.empty(), ErrorKind::usage, "--output is missing: the token file to write");
  std::error_code code;
  require(!fs::exists(o.output, code), ErrorKind::usage,
          "'{}' is there already; choose another --output or remove it", o.output.string());
  const std::vector<DataFile> files = list_files(o.text.data, o.text.format);
  require(files.front().holds_text(), ErrorKind::data, "'{}' holds tokens already",
          files.front().path.string());
  const TokenizeJob job =
      tokenize_job(files, o.text, TextTokenizer::open(o.tokenizer), o.end_token);
  Log log(stderr);
  warn_of(job.tokenizer.bpe(), log);
  TokenFileWriter writer(o.output);
  make_tokens(job, writer, o.threads, log);
  const TokenData made = TokenData::open({{o.output, DataFormat::tokens}});
  for (const std::string& warning : made.warnings()) warn_line(log, "{}", warning);
  return 0;
}

}  // namespace rankine

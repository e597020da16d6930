#include "base/file.h"
#include "base/temporary.h"
#include "base/text.h"
#include "command.h"
#include "data/data_checks.h"
#include "data/show_samples.h"
#include "data/token_source.h"
#include "library/make_tokens.h"
#include "library/model_source.h"
#include "library/ranks.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

struct TokenizeOptions {
  TextOptions text;
  std::string tokenizer, begin_token, end_token;
  fs::path output;
  int64_t threads = 0, show = 0;
};

OptionTable declare(TokenizeOptions& o) {
  OptionTable table;
  declare_options(table, o.text);
  declare_instruction_options(table, o.text);
  declare_tokenizer_options(table, {o.tokenizer, o.begin_token, o.end_token});
  table.path({"output"}, &o.output, "the token file to write");
  table.integer({"show"}, &o.show,
                "print the first so many documents or samples, what is learned between [[ and ]]",
                {.least = 0});
  table.integer({"threads"}, &o.threads, "to tokenize with; 0: one for each processor",
                {.least = 0, .most = 4096});
  return table;
}

}  // namespace

int run_tokenize(const CommandArguments& arguments) {
  TokenizeOptions o;
  OptionTable table = declare(o);
  if (parse_options(table, arguments).help) {
    fmt::print("{}", help_text(table, "rankine tokenize",
                               "Makes a token file of text, to train on it with `rankine train "
                               "--data FILE`."));
    return 0;
  }
  check_threads(o.threads);
  require(!o.text.data.empty(), ErrorKind::usage, "--data is missing: files of text");
  require(!o.tokenizer.empty(), ErrorKind::usage,
          "--tokenizer is missing: bytes, a tokenizer.json, or a folder with one");
  require(!o.output.empty(), ErrorKind::usage, "--output is missing: the token file to write");
  require(!is_there(o.output), ErrorKind::usage,
          "'{}' is there already; choose another --output or remove it", o.output.string());
  const std::string maker = maker_of(o.output);
  require(maker.empty(), ErrorKind::environment,
          "'{}' is in use: {} is writing it; wait for its end, or choose another --output",
          o.output.string(), maker);
  const std::vector<DataFile> files = list_files(o.text);
  require(files.front().holds_text(), ErrorKind::data, "'{}' holds tokens already",
          files.front().path.string());
  refuse_idle_options(table, files);
  require_distinct(files);
  const TextTokenizer tokenizer =
      TextTokenizer::open(o.tokenizer).with_bounds(o.begin_token, o.end_token);
  const TokenizeJob job = tokenize_job(files, o.text, tokenizer);
  Log log(stderr);
  warn_of(job.tokenizer.bpe(), log);
  TokenFileWriter writer(o.output);
  make_tokens(job, writer, o.threads, log);
  const TokenData made = TokenData::open({{o.output, DataFormat::tokens}});
  for (const std::string& warning : made.warnings()) warn_line(log, "{}", warning);
  if (o.show > 0)
    fmt::print("{}", shown_samples(made, tokenizer.bpe(), static_cast<uint64_t>(o.show)));
  return 0;
}

}  // namespace rankine

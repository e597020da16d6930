#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <optional>

#include "base/file.h"
#include "base/text.h"
#include "command.h"
#include "data/data_checks.h"
#include "data/utf8_text.h"
#include "inference/evaluator.h"
#include "library/eval_documents.h"
#include "library/outputs.h"
#include "library/ranks.h"
#include "library/text_bounds.h"
#include "library/text_model.h"
#include "machine/process.h"
#include "ops/backend.h"
#include "options/run_options.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct EvalOptions {
  TextModelOptions source;
  TextOptions text;
  int64_t context = 0, stride = 0, micro_batch_size = 4, threads = 0;
  fs::path per_document;
  bool json = false;
  Precision precision = Precision::f32;
  std::string device = "cpu";
  std::string instruction_set;
  uint64_t memory_limit = 0;
  ParallelOptions parallel;
};

OptionTable declare(EvalOptions& o) {
  OptionTable table;
  table.heading("Model and data");
  declare_options(table, o.source);
  table.heading("Documents");
  declare_options(table, o.text);
  table.heading("Evaluation");
  table.integer({"context"}, &o.context,
                "tokens of a window; 0: the positions the model was made for, at most 1024",
                {.least = 0});
  table.integer({"stride"}, &o.stride,
                "from one window to the next: when less than --context every token but the first "
                "window's sees at least the difference; 0: windows do not overlap",
                {.least = 0});
  table.integer({"micro-batch-size"}, &o.micro_batch_size, "windows computed at a time",
                {.least = 1, .most = most_sequences});
  table.path({"per-document"}, &o.per_document,
             "write a line of JSON for each document to this file: path, index, tokens, bytes, "
             "loss, bits_per_byte");
  table.flag({"json"}, &o.json, "print the result as JSON");
  declare_precision_option(table, o.precision);
  table.heading("Machine");
  table.integer({"ranks"}, &o.parallel.ranks,
                "processes that share the documents, each with the whole model; 0: one, or those "
                "a launcher started",
                {.least = 0, .most = 4096});
  declare_machine_options(table, {&o.device, &o.threads, &o.instruction_set});
  table.bytes(
      {"memory-limit"}, &o.memory_limit,
      "refuse to start when a rank's plan needs more; 0: its share of the machine's memory");
  return table;
}

// What is known of a document before its loss is.
struct Scored {
  fs::path file;
  int64_t index;
  double bytes;  // < 0: not known
  int64_t tokens = 0;
  double loss = 0;
};

Json bits_per_byte(double loss, double bytes) {
  return bytes > 0 ? Json(loss / std::numbers::ln2 / bytes) : Json();
}

Json bytes_json(double bytes) {
  return bytes >= 0 ? Json(static_cast<int64_t>(bytes)) : Json();
}

void write_documents(const fs::path& file, const std::vector<Scored>& documents) {
  std::string text;
  for (const Scored& d : documents) {
    Json line;
    line["path"] = d.file.string();
    line["index"] = d.index;
    line["tokens"] = d.tokens;
    line["bytes"] = bytes_json(d.bytes);
    line["loss"] = d.tokens > 0 ? Json(d.loss / static_cast<double>(d.tokens)) : Json();
    line["bits_per_byte"] = bits_per_byte(d.loss, d.bytes);
    text += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  write_text_atomically(file, text);
}

bool are_own_documents(const std::string& text) {
  const Json line = Json::parse(text.substr(0, text.find('\n')), nullptr, false);
  if (!line.is_object() || line.size() != 6) return false;
  return std::ranges::all_of(
      std::array{"path", "index", "tokens", "bytes", "loss", "bits_per_byte"},
      [&](const char* key) { return line.contains(key); });
}

void print_result(const EvalOptions& o, const std::vector<Scored>& documents, double seconds) {
  Scored all{{}, 0, 0};
  for (const Scored& d : documents) {
    all.tokens += d.tokens;
    all.loss += d.loss;
    all.bytes = d.bytes < 0 || all.bytes < 0 ? -1 : all.bytes + d.bytes;
  }
  require(all.tokens > 0, ErrorKind::data,
          "the data has no token to predict: {} documents, all empty or of one token",
          documents.size());
  const double loss = all.loss / static_cast<double>(all.tokens);
  const Json bits = bits_per_byte(all.loss, all.bytes);
  if (o.json) {
    fmt::print("{}\n", Json{{"documents", documents.size()},
                            {"tokens", all.tokens},
                            {"bytes", bytes_json(all.bytes)},
                            {"loss", loss},
                            {"perplexity", std::exp(loss)},
                            {"bits_per_byte", bits}}
                           .dump());
    return;
  }
  fmt::print(
      "documents      {}\ntokens         {}\nbytes          {}\n", documents.size(), all.tokens,
      all.bytes < 0 ? "not known: no tokenizer for token files" : fmt::format("{:.0f}", all.bytes));
  fmt::print("loss           {:.6f} nats/token\nperplexity     {:.4f}\nbits per byte  {}\n", loss,
             std::exp(loss),
             bits.is_null() ? "not known" : fmt::format("{:.6f}", bits.get<double>()));
  fmt::print("{:.0f} tokens/s\n", static_cast<double>(all.tokens) / seconds);
}

// Tokens from text: what a document begins with, then its text.
class DocumentEncoder {
 public:
  // Without a tokenizer there are token files alone; `fault` says why it is missing.
  DocumentEncoder(const TextTokenizer* tokenizer, std::string fault, int64_t vocabulary)
      : tokenizer_(tokenizer), fault_(std::move(fault)), vocabulary_(vocabulary) {
    if (tokenizer_ != nullptr) encoder_.emplace(tokenizer_->bpe());
  }

  // The ids of a document and the bytes that they stand for; -1: not known.
  double encode(const EvalDocument& document, std::vector<int32_t>& ids) {
    if (document.is_tokens) return take_tokens(document, ids);
    require(tokenizer_ != nullptr, ErrorKind::usage, "{}", fault_);
    ids = tokenizer_->first_tokens();
    const bool is_bytes = tokenizer_->is_bytes();
    encoder_->encode(is_bytes ? document.text : valid_utf8(document.text, valid_, replaced_), {},
                     ids);
    return static_cast<double>(document.text.size());
  }

  uint64_t replaced() const { return replaced_; }  // ill-formed UTF-8

 private:
  double take_tokens(const EvalDocument& document, std::vector<int32_t>& ids) const {
    ids = document.ids;
    for (size_t i = 0; i < ids.size(); ++i)
      require(ids[i] >= 0 && ids[i] < vocabulary_, ErrorKind::data,
              "'{}': token {} is {}, and the model's vocabulary has {}", document.file.string(), i,
              ids[i], vocabulary_);
    if (tokenizer_ == nullptr || ids.empty()) return -1;
    // The first is predicted by nothing.
    return static_cast<double>(
        tokenizer_->bpe().decode(TokenIds(ids.begin() + 1, ids.end()), true).size());
  }

  const TextTokenizer* tokenizer_;
  std::string fault_;
  int64_t vocabulary_;
  std::optional<Encoder> encoder_;
  std::string valid_;
  uint64_t replaced_ = 0;
};

Evaluator::Setup evaluator_setup(const EvalOptions& o, const ModelConfig& config) {
  Evaluator::Setup setup;
  setup.rows = o.micro_batch_size;
  setup.context = o.context > 0 ? o.context : std::min<int64_t>(config.positions, 1024);
  setup.stride = o.stride > 0 ? o.stride : setup.context;
  require(setup.context <= config.positions, ErrorKind::usage,
          "--context {} exceeds the model's {} positions", setup.context, config.positions);
  require(setup.stride <= setup.context, ErrorKind::usage,
          "--stride {} exceeds --context {}: tokens between windows would not be scored",
          setup.stride, setup.context);
  return setup;
}

// The model's tokenizer, or why there is none.
std::optional<TextTokenizer> find_tokenizer(const EvalOptions& o, const ModelSource& source,
                                            std::string& fault) {
  try {
    return tokenizer_of(source, o.source);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    fault = error.what();
    return {};
  }
}

// Ranks take documents in turn; afterwards all know all losses.
std::vector<Scored> score(const EvalOptions& o, const ModelSource& source, Engine& engine,
                          const Evaluator::Setup& setup, Communicator& ranks, Log& log) {
  std::string fault;
  const std::optional<TextTokenizer> found = find_tokenizer(o, source, fault);
  const TextTokenizer* const tokenizer = found ? &*found : nullptr;
  if (tokenizer != nullptr) warn_of(tokenizer->bpe(), source.config.vocabulary, log);
  log_line(log, "text      {}",
           to_string(text_bounds({source.config, source.generation_eos, tokenizer}), tokenizer));
  std::vector<Scored> documents;
  Evaluator evaluator(engine, setup, [&](size_t own) {
    const Scored& document =
        documents[own * static_cast<size_t>(ranks.size()) + static_cast<size_t>(ranks.rank())];
    return fmt::format("document {} of '{}'", document.index, document.file.string());
  });
  DocumentEncoder encoder(tokenizer, fault, source.config.vocabulary);
  std::vector<int32_t> ids;
  for_each_document(o.text, tokenizer, log, [&](const EvalDocument& document) {
    const auto number = static_cast<int64_t>(documents.size());
    documents.push_back({document.file, document.index, 0});
    if (number % ranks.size() != ranks.rank()) return;
    documents.back().bytes = encoder.encode(document, ids);
    evaluator.add(ids);
  });
  if (encoder.replaced() > 0)
    warn_line(log, "{} pieces of text are no UTF-8 and were read as U+FFFD", encoder.replaced());
  std::vector<double> figures(3 * documents.size());
  const std::vector<Evaluator::Document>& own = evaluator.finish();
  for (size_t i = 0; i < own.size(); ++i) {
    const size_t number = i * static_cast<size_t>(ranks.size()) + static_cast<size_t>(ranks.rank());
    figures[3 * number] = documents[number].bytes;
    figures[3 * number + 1] = static_cast<double>(own[i].tokens);
    figures[3 * number + 2] = own[i].loss;
  }
  if (!figures.empty())
    ranks
        .all_reduce({figures.data(), DType::f64, Shape{static_cast<int64_t>(figures.size())}},
                    Reduction::sum, "losses")
        .wait();
  for (size_t i = 0; i < documents.size(); ++i) {
    documents[i].bytes = figures[3 * i];
    documents[i].tokens = static_cast<int64_t>(figures[3 * i + 1]);
    documents[i].loss = figures[3 * i + 2];
  }
  return documents;
}

}  // namespace

int run_eval(const CommandArguments& arguments) {
  EvalOptions o;
  OptionTable table = declare(o);
  if (parse_options(table, arguments).help) {
    fmt::print("{}", help_text(table, "rankine eval", "Measures how well a model predicts texts."));
    return 0;
  }
  require(!o.source.model.empty() && !o.text.data.empty(), ErrorKind::usage, "{} missing",
          o.text.data.empty() ? (o.source.model.empty() ? "--model and --data are" : "--data is")
                              : "--model is");
  const std::vector<DataFile> files = list_files(o.text);
  refuse_idle_options(table, files);
  require_distinct(files);
  require_replaceable(o.per_document, "per-document", are_own_documents);
  const ModelSource source = open_text_model(o.source);
  const Evaluator::Setup setup = evaluator_setup(o, source.config);
  const auto require_room = [&](const Engine& engine, int local_ranks) {
    require_memory(engine.plan(),
                   {.all = o.memory_limit > 0 ? o.memory_limit : memory_share(local_ranks)},
                   "choose a smaller --micro-batch-size, --context or model, fewer --ranks, or "
                   "--precision f32 (no second copy)");
  };
  const auto check_memory = [&](const MeshShape& mesh) {
    const auto ops =
        make_backend({o.device, threads_of_first_rank(o.threads, mesh.world()), o.instruction_set})
            .ops;
    require_room(
        Engine(*ops, source.config, evaluation_setup(compute_dtype(o.precision, *ops), setup)),
        mesh.world());
  };
  const RanksJob job{o.parallel, o.threads, "eval", arguments, check_memory};
  return on_ranks(job, [&](const Rank& rank) {
    Log log(rank.world.rank() == 0 ? stderr : nullptr);
    const Mesh mesh(rank.world, mesh_of(o.parallel, rank.world.size()));
    const auto ops = make_backend({o.device, rank.threads, o.instruction_set}).ops;
    Engine engine(*ops, source.config, evaluation_setup(compute_dtype(o.precision, *ops), setup));
    require_room(engine, rank.local_ranks);
    engine.allocate();
    load_weights_from(source, engine, log);
    const double start = monotonic_seconds();
    const std::vector<Scored> documents = score(o, source, engine, setup, *mesh.world, log);
    if (rank.world.rank() != 0) return 0;
    print_result(o, documents, monotonic_seconds() - start);
    if (!o.per_document.empty()) write_documents(o.per_document, documents);
    return 0;
  });
}

}  // namespace rankine

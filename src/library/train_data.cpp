#include "library/train_data.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <thread>

#include "base/file.h"
#include "base/temporary.h"
#include "base/text.h"
#include "launch/processors.h"
#include "library/make_tokens.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

std::optional<TextTokenizer> tokenizer_of_token_file(const DataSource& data) {
  const DataFile& first = data.corpora.front().front();
  if (first.format != DataFormat::tokens) return std::nullopt;
  const MappedFile file(first.path);
  const std::string name = first.path.string();
  TokenFileFacts facts = read_token_file({file.data(), file.size()}, name).facts;
  return TextTokenizer::parse(std::move(facts.tokenizer_json), std::move(facts.tokenizer_config),
                              name);
}

std::optional<TextTokenizer> named_tokenizer(const TrainOptions& o) {
  if (!o.run_tokenizer.empty()) return TextTokenizer::open(o.run_tokenizer);
  if (o.data.tokenizer.empty()) return std::nullopt;
  return TextTokenizer::open(o.data.tokenizer);
}

// Folder of token files that are made from text.
fs::path cache_folder(const TrainOptions& o) {
  if (!o.data.cache.empty()) return o.data.cache;
  const fs::path runs = o.run.output.empty() ? "runs" : fs::absolute(o.run.output).parent_path();
  return runs / "token-cache";
}

// Text that becomes a token file.
struct PendingTokens {
  TokenizeJob job;
  fs::path file;
};

// Why a token file of the cache cannot be used, or "".
std::string cache_fault(const fs::path& file) {
  const MappedFile mapped(file);
  try {
    read_token_file({mapped.data(), mapped.size()}, file.string());
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

void make_missing(const std::vector<PendingTokens>& all, int64_t threads, Log& log,
                  const std::atomic<bool>& given_up) {
  for (const PendingTokens& pending : all) {
    make_folders(pending.file.parent_path());
    remove_abandoned(pending.file.parent_path());
    if (const std::string who = maker_of(pending.file); !who.empty()) {
      log_line(log, "waiting for {}, which makes '{}'", who, pending.file.string());
      await_maker(pending.file);
    }
    if (is_there(pending.file)) {
      const std::string fault = cache_fault(pending.file);
      if (fault.empty()) continue;
      warn_line(log, "{}; it is made again from the text", fault);
    }
    TokenFileWriter writer(pending.file, PendingFile::Existing::replaced);
    make_tokens(pending.job, writer, threads, log, given_up);
  }
}

// Runs `work` on the first rank of each host. The ranks keep in touch meanwhile, so that none
// thinks the others dead, and fail together; when they cannot, the work is told that it is given
// up.
void on_first_of_host(const Rank& rank, Communicator& ranks,
                      const std::function<void(const std::atomic<bool>& given_up)>& work) {
  const std::vector<std::string> hosts = all_gather_texts(ranks, rank.world.host(), "hosts");
  const auto first = std::find(hosts.begin(), hosts.end(), rank.world.host()) - hosts.begin();
  std::string fault;
  std::atomic<bool> given_up = false;
  std::future<void> done = std::async(std::launch::deferred, [] {});
  if (first == ranks.rank()) done = std::async(std::launch::async, work, std::cref(given_up));
  struct GiveUp {  // before the future waits for the work
    std::atomic<bool>& flag;
    ~GiveUp() { flag = true; }
  } const give_up{given_up};
  for (int32_t busy = 1; busy != 0;) {
    constexpr auto once = std::chrono::milliseconds(200);
    busy = done.wait_for(once) == std::future_status::timeout ? 1 : 0;
    ranks.all_reduce({&busy, DType::i32, Shape{1}}, Reduction::max, "tokenizing").wait();
  }
  std::exception_ptr own;
  try {
    done.get();
  } catch (const std::exception& e) {
    own = std::current_exception();
    fault = e.what();
  }
  const std::vector<std::string> faults = all_gather_texts(ranks, fault, "tokenizing");
  if (own) std::rethrow_exception(own);
  for (const std::string& other : faults) require(other.empty(), ErrorKind::data, "{}", other);
}

constexpr const char* whole_mark = "tokens, all ";

std::string identity_of(const TokenData& data) {
  return fmt::format("{} {}{:016x}", data.count(), whole_mark, data.contents_hash());
}

std::string sampled_identity_of(const TokenData& data) {
  constexpr uint64_t samples = 1024, length = 64;
  uint64_t hash = hash_text("tokens");
  std::vector<int32_t> tokens(length);
  for (uint64_t i = 0; i < samples; ++i) {
    const uint64_t count = std::min(length, data.count());
    data.copy((data.count() - count) / samples * i, count, tokens.data());
    hash = hash_text({reinterpret_cast<const char*>(tokens.data()), count * sizeof(int32_t)}, hash);
  }
  return fmt::format("{} tokens, {:016x}", data.count(), hash);
}

std::string joined_identities(const std::vector<Corpus>& corpora,
                              std::string (*identity)(const TokenData&)) {
  std::string out;
  for (const Corpus& corpus : corpora)
    out += (out.empty() ? "" : " and ") + identity(corpus.data());
  return out;
}

SampleOrder order_of(const TrainOptions& o, const Corpus& corpus, double share, uint64_t number) {
  // Rounded up, but not because of the share's own rounding.
  const double batch = share * static_cast<double>(o.run.global_batch_size);
  return SampleOrder({.windows = corpus.windows(),
                      .least_training = static_cast<uint64_t>(std::ceil(batch - 1e-6)),
                      .validation_fraction = o.data.validation_fraction,
                      .seed = o.run.seed,
                      .corpus = number,
                      .name = corpus.name()});
}

}  // namespace

std::vector<DataFile> DataSource::files() const {
  std::vector<DataFile> out;
  for (const std::vector<DataFile>& some : corpora) out.insert(out.end(), some.begin(), some.end());
  return out;
}

DataSource find_data(const DataOptions& o) {
  DataSource out;
  if (o.weights.empty()) {
    out.corpora.push_back(list_files(o.text));
    out.weights = {1};
    return out;
  }
  out.weights = parse_weights(o.weights, o.text.data.size());
  for (const fs::path& path : o.text.data) {
    out.corpora.push_back(list_files({path}, o.text));
    require(out.corpora.back().front().holds_text() == out.holds_text(), ErrorKind::data,
            "'{}' and '{}': text and token files cannot be mixed", o.text.data.front().string(),
            path.string());
  }
  return out;
}

std::optional<TextTokenizer> training_tokenizer(const TrainOptions& o, const ModelSource& source,
                                                const DataSource& data) {
  const bool shape_only = source.kind == ModelSource::Kind::preset || o.from_scratch;
  std::optional<TextTokenizer> named = named_tokenizer(o);
  const std::optional<TextTokenizer> of_files = tokenizer_of_token_file(data);
  require(!named || !of_files || named->identity() == of_files->identity(), ErrorKind::data,
          "'{}' was made with another tokenizer ({}) than the one to train with ({}); tokenize the "
          "text again, or leave --tokenizer out",
          data.corpora.front().front().path.string(), of_files ? of_files->identity() : "",
          named ? named->identity() : "");
  if (of_files) named = of_files;  // it knows what its samples were made with, too
  if (named) {
    require(shape_only || source.tokenizer.empty() || source.tokenizer == named->identity(),
            ErrorKind::data,
            "the model of '{}' was trained with another tokenizer ({}) than that of the data ({}); "
            "use the model's own, or --from-scratch",
            o.model, source.tokenizer, named->identity());
    return named;
  }
  if (source.text_tokenizer != nullptr) return *source.text_tokenizer;
  if (!data.holds_text()) return std::nullopt;
  if (shape_only) return TextTokenizer::bytes();
  require(source.tokenizer_fault.empty(), ErrorKind::data, "{}", source.tokenizer_fault);
  fail(ErrorKind::usage,
       "the folder of '{}' has no tokenizer, so text cannot become its tokens; give its "
       "--tokenizer, token files, or --from-scratch",
       o.model);
}

TrainingData open_data(const TrainOptions& o, const DataSource& source,
                       const std::optional<TextTokenizer>& tokenizer, const Rank& rank,
                       Communicator& ranks, Log& log) {
  std::vector<std::vector<DataFile>> readable;
  std::vector<PendingTokens> pending;
  for (const std::vector<DataFile>& files : source.corpora) {
    readable.push_back(files);
    if (!source.holds_text() || (tokenizer->is_bytes() && readable_as_bytes(files))) continue;
    pending.push_back({tokenize_job(files, o.data.text, *tokenizer), {}});
    pending.back().file = cache_folder(o) / (job_key(pending.back().job) + ".tokens");
    readable.back() = {{pending.back().file, DataFormat::tokens}};
  }
  if (!pending.empty())
    on_first_of_host(rank, ranks, [&](const std::atomic<bool>& given_up) {
      // The others wait meanwhile, so that their processors are free.
      pin_to(rank.host_processors);
      const int64_t all = static_cast<int64_t>(rank.threads) * rank.local_ranks;
      make_missing(pending, std::min(all, std::ssize(rank.host_processors)), log, given_up);
    });

  std::vector<Corpus> corpora;
  std::vector<SampleOrder> orders;
  double sum = 0;
  for (const double weight : source.weights) sum += weight;
  for (size_t i = 0; i < readable.size(); ++i) {
    const bool ends_unknown = o.data.document_mask && tokenizer && !source.holds_text();
    corpora.emplace_back(TokenData::open(readable[i]), static_cast<uint64_t>(o.run.seq_length),
                         ends_unknown ? tokenizer->end_token() : -1,
                         source.corpora[i].front().path.string());
    orders.push_back(order_of(o, corpora.back(), source.weights[i] / sum, i));
  }
  TrainingData out{std::move(corpora), SampleMix(std::move(orders), source.weights)};
  const std::vector<std::string> identities = all_gather_texts(ranks, out.identity(), "corpus");
  for (size_t r = 0; r < identities.size(); ++r)
    require(identities[r] == identities[0], ErrorKind::data,
            "rank {} sees another corpus than rank 0: {}, not {}; all ranks must read the same "
            "files",
            r, identities[r], identities[0]);
  return out;
}

uint64_t TrainingData::tokens() const {
  uint64_t sum = 0;
  for (const Corpus& corpus : corpora) sum += corpus.data().count();
  return sum;
}

size_t TrainingData::files() const {
  size_t sum = 0;
  for (const Corpus& corpus : corpora) sum += corpus.data().files().size();
  return sum;
}

std::vector<std::string> TrainingData::warnings() const {
  std::vector<std::string> out;
  for (const Corpus& corpus : corpora) {
    for (const std::vector<std::string>& some : {corpus.data().warnings(), corpus.warnings()})
      out.insert(out.end(), some.begin(), some.end());
  }
  return out;
}

std::string TrainingData::identity() const {
  return joined_identities(corpora, identity_of);
}

std::string TrainingData::identity_like(const std::string& stored) const {
  const bool sampled = stored.find(whole_mark) == std::string::npos;
  return joined_identities(corpora, sampled ? sampled_identity_of : identity_of);
}

}  // namespace rankine

#include "data/tokenize.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/ordered_work.h"
#include "data/document_reader.h"
#include "data/text_report.h"
#include "data/utf8_text.h"

namespace rankine {
namespace {

struct EncodedPiece {
  std::string bytes;  // tokens as they are stored
  uint64_t tokens = 0, documents = 0, bytes_read = 0;
  PieceReport report;
};

// One thread's share of the work.
class PieceEncoder {
 public:
  explicit PieceEncoder(const TokenizeJob& job)
      : job_(job),
        encoder_(job.tokenizer.bpe()),
        samples_(job.format, job.tokenizer, job.end_token),
        width_(token_width(job.tokenizer.vocabulary(), job.makes_samples())) {}

  EncodedPiece encode(const TextPiece& piece) {
    EncodedPiece out;
    out.bytes_read = piece.bytes_read;
    out.report.file = piece.file;
    ids_.clear();
    sample_tokens_.clear();
    if (job_.makes_samples())
      encode_samples(piece, out);
    else if (piece.is_lines)
      encode_lines(piece, out);
    else
      encode_text(piece, out);
    if (job_.makes_samples())
      store(sample_tokens_, out);
    else
      store(ids_, out);
    return out;
  }

 private:
  void encode_lines(const TextPiece& piece, EncodedPiece& out) {
    lines_.read_field(piece.bytes, job_.text_field, out.report.lines, [&](std::string_view text) {
      if (text.empty()) {
        ++out.report.empty_documents;
        return;
      }
      begin_document();
      append(text, PieceStart::text);
      ids_.push_back(job_.end_token);
      ++out.documents;
    });
  }

  void begin_document() {
    const TokenIds& begins = job_.tokenizer.bpe().begins();
    ids_.insert(ids_.end(), begins.begin(), begins.end());
  }

  void encode_samples(const TextPiece& piece, EncodedPiece& out) {
    lines_.read_conversations(piece.bytes, job_.format.fields, out.report.lines,
                              [&](const Conversation& conversation) {
                                const ChatTokens tokens = samples_.encode(conversation);
                                if (!SampleEncoder::learns(tokens)) {
                                  ++out.report.samples_without_target;
                                  return;
                                }
                                append_sample(tokens, sample_tokens_);
                                ++out.documents;
                              });
  }

  void encode_text(const TextPiece& piece, EncodedPiece& out) {
    const std::string& bytes = piece.bytes;
    out.report.has_nul = std::memchr(bytes.data(), 0, bytes.size()) != nullptr;
    // Bytes are kept whatever they are.
    const bool is_bytes = job_.tokenizer.is_bytes();
    out.report.forced_cuts = piece.is_forced && !is_bytes ? 1 : 0;
    if (piece.begins) begin_document();
    append(
        is_bytes ? std::string_view(bytes) : valid_utf8(bytes, valid_, out.report.lines.replaced),
        piece.begins ? PieceStart::text : PieceStart::within);
    if (!piece.ends) return;
    ids_.push_back(job_.end_token);
    ++out.documents;
  }

  // What a document says of special tokens is text.
  void append(std::string_view text, PieceStart start) {
    if (!job_.tokenizer.is_bytes()) return encoder_.encode(text, {.start = start}, ids_);
    for (const char byte : text) ids_.push_back(static_cast<uint8_t>(byte));
  }

  template <class Token>
  void store(const std::vector<Token>& tokens, EncodedPiece& out) const {
    const auto bytes = static_cast<size_t>(width_);
    out.tokens = tokens.size();
    out.bytes.resize(tokens.size() * bytes);
    char* to = out.bytes.data();
    for (size_t i = 0; i < tokens.size(); ++i) std::memcpy(to + i * bytes, &tokens[i], bytes);
  }

  const TokenizeJob& job_;
  Encoder encoder_;
  SampleEncoder samples_;
  JsonLines lines_;
  TokenWidth width_;
  TokenIds ids_;
  std::vector<uint32_t> sample_tokens_;
  std::string valid_;
};

// A text that changes with what samples are made of.
std::string format_identity(const InstructionFormat& format) {
  const ConversationFields& fields = format.fields;
  std::string out = fmt::format("{}\n{}\n{}\n", fields.prompt, fields.response, fields.messages);
  for (const std::string& name : fields.ignored) out += "ignored " + name + "\n";
  return out + (format.chat ? format.chat->identity() : "no template") + "\n";
}

std::string lines_of(const std::vector<std::string>& notes) {
  std::string out;
  for (const std::string& note : notes) out += note + "\n";
  return out;
}

}  // namespace

TokenizeJob tokenize_job(std::vector<DataFile> files, const TextOptions& options,
                         const TextTokenizer& tokenizer) {
  TokenizeJob job{.files = std::move(files),
                  .text_field = options.text_field,
                  .bad_lines = options.bad_lines,
                  .tokenizer = tokenizer};
  if (job.makes_samples())
    job.format = {options.conversation, chosen_template(options.chat, tokenizer)};
  // With a template the token that ends a reply is the template's own.
  if (!job.format.chat) job.end_token = tokenizer.end_token();
  return job;
}

TokenFileFacts tokenize(const TokenizeJob& job, TokenFileWriter& output, int threads,
                        const std::function<void(const TokenizeProgress&)>& report) {
  TextReader reader(job.files, {.cuts_at_lines = job.tokenizer.is_bytes() ||
                                                 job.tokenizer.bpe().can_cut_at_lines()});
  TextReport text_report(job.files, job.bad_lines);
  std::vector<PieceEncoder> encoders;
  for (int i = 0; i < std::max(1, threads); ++i) encoders.emplace_back(job);
  TokenizeProgress progress{.total_bytes = reader.total_bytes()};
  run_in_order<TextPiece, EncodedPiece>(
      std::max(1, threads),
      {.take = [&](TextPiece& piece) { return reader.next(piece); },
       .work = [&](TextPiece& piece,
                   int thread) { return encoders[static_cast<size_t>(thread)].encode(piece); },
       .finish =
           [&](EncodedPiece& piece) {
             text_report.add(piece.report);
             output.append(piece.bytes);
             progress.bytes = piece.bytes_read;
             progress.tokens += piece.tokens;
             progress.documents += piece.documents;
             report(progress);
           }});
  text_report.finish();
  std::vector<std::string> notes = text_report.notes();
  if (reader.empty_files() > 0)
    notes.push_back(fmt::format("{} empty files are left out", reader.empty_files()));
  TokenFileFacts facts{.width = token_width(job.tokenizer.vocabulary(), job.makes_samples()),
                       .vocabulary = job.tokenizer.vocabulary(),
                       .tokenizer_hash = job.tokenizer.bpe().hash(),
                       .tokens = progress.tokens,
                       .documents = progress.documents,
                       .end_token = job.makes_samples() ? -1 : job.end_token,
                       .samples = job.makes_samples(),
                       .tokenizer_json = job.tokenizer.file("tokenizer.json"),
                       .tokenizer_config = job.tokenizer_config(),
                       .notes = lines_of(notes)};
  require(facts.tokens > 0, ErrorKind::data, "'{}': there are no documents in the data",
          job.files.front().path.string());
  output.finish(facts);
  return facts;
}

std::string TokenizeJob::tokenizer_config() const {
  const std::string config = tokenizer.whole_config();
  if (!format.chat) return config;
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(config);
  json["chat_template"] = format.chat->text();
  return json.dump(2) + "\n";
}

std::string job_key(const TokenizeJob& job) {
  constexpr int result_version = 3;  // grows when the same job comes to give another file
  constexpr uint64_t parts = 16, part_bytes = 4096;
  std::string text =
      fmt::format("{} {:016x} {} {} {}\n", result_version, job.tokenizer.bpe().hash(),
                  job.end_token, job.text_field, job.bad_lines);
  text += format_identity(job.format) + job.tokenizer_config() + "\n";
  for (const int32_t id : job.tokenizer.bpe().begins()) text += fmt::format("begins {}\n", id);
  std::vector<char> buffer(part_bytes);
  for (const DataFile& file : job.files) {
    const File opened = File::open_read(file.path);
    const uint64_t size = opened.size();
    const auto time = std::filesystem::last_write_time(file.path).time_since_epoch().count();
    uint64_t hash = 0;
    for (uint64_t i = 0; i < parts; ++i) {
      const uint64_t bytes = std::min(size, part_bytes);
      opened.read(buffer.data(), bytes, (size - bytes) * i / (parts - 1));
      hash = XXH3_64bits_withSeed(buffer.data(), bytes, hash);
    }
    text += fmt::format("{} {} {} {} {:016x}\n", file.path.filename().string(),
                        static_cast<int>(file.format), size, time, hash);
  }
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

}  // namespace rankine

#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/bench.h"
#include "data/document_reader.h"
#include "data/json_lines.h"
#include "data/text_tokenizer.h"
#include "data/tokenizer/bpe_trainer.h"
#include "machine/process.h"

namespace rankine {
namespace {

constexpr int rounds = 5;
constexpr uint64_t most_text = uint64_t{64} << 20, record_bytes = 2048;

// Documents of the files, or the parts in which they are read.
std::vector<std::string> read_documents(const TextOptions& o) {
  std::vector<DataFile> files = list_files(o);
  require(files.front().holds_text() && files.front().format != DataFormat::instructions,
          ErrorKind::data, "'{}' does not hold text", files.front().path.string());
  TextReader reader(std::move(files));
  JsonLines lines;
  LineCounts counts;
  std::vector<std::string> documents;
  uint64_t bytes = 0;
  const auto keep = [&](std::string_view text) {
    text = text.substr(0, most_text - bytes);
    bytes += text.size();
    if (!text.empty()) documents.emplace_back(text);
  };
  for (TextPiece piece; bytes < most_text && reader.next(piece);)
    if (piece.is_lines)
      lines.read_field(piece.bytes, o.text_field, counts, keep);
    else
      keep(piece.bytes);
  require(!documents.empty(), ErrorKind::data, "no text in '{}'", o.data.front().string());
  return documents;
}

// A file in memory that holds the documents as JSON lines of about `record_bytes` of text.
class LinesFile {
 public:
  explicit LinesFile(const std::vector<std::string>& documents)
      : handle_(::memfd_create("rankine bench", MFD_CLOEXEC)) {
    require(handle_ >= 0, ErrorKind::environment, "cannot make a file in memory");
    std::string lines;
    for (const std::string& document : documents)
      for (size_t at = 0; at < document.size(); at += record_bytes) {
        using Json = nlohmann::json;
        const Json line = {{"id", lines.size()}, {"text", document.substr(at, record_bytes)}};
        lines += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
      }
    std::ofstream(path(), std::ios::binary) << lines << std::flush;
    bytes_ = lines.size();
  }
  LinesFile(const LinesFile&) = delete;
  LinesFile& operator=(const LinesFile&) = delete;
  ~LinesFile() { ::close(handle_); }

  std::filesystem::path path() const { return fmt::format("/proc/self/fd/{}", handle_); }
  uint64_t bytes() const { return bytes_; }

 private:
  int handle_;
  uint64_t bytes_ = 0;
};

template <class Work>
double median_seconds(Work&& work) {
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    const double start = monotonic_seconds();
    work();
    seconds.push_back(monotonic_seconds() - start);
  }
  return median(seconds);
}

}  // namespace

TextFigures measure_text(const BenchOptions& o) {
  const std::vector<std::string> documents = read_documents(o.text);
  TextFigures f;
  for (const std::string& document : documents) f.text_bytes += document.size();
  const LinesFile file(documents);
  f.lines_bytes = file.bytes();
  f.lines_seconds = median_seconds([&] {
    TextReader reader({{file.path(), DataFormat::jsonl, Compression::none}});
    JsonLines lines;
    LineCounts counts;
    uint64_t read = 0;
    for (TextPiece piece; reader.next(piece);)
      lines.read_field(piece.bytes, "text", counts,
                       [&](std::string_view text) { read += text.size(); });
    require(counts.bad == 0 && read >= f.text_bytes, ErrorKind::internal, "lost text on the way");
  });
  const TextTokenizer tokenizer = TextTokenizer::open(o.tokenizer);
  f.encode_seconds = median_seconds([&] {
    Encoder encoder(tokenizer.bpe());
    TokenIds ids;
    f.tokens = 0;
    for (const std::string& document : documents) {
      ids.clear();
      encoder.encode(document, {}, ids);
      f.tokens += ids.size();
    }
  });
  f.train_seconds = median_seconds([&] {
    BpeTrainer trainer(SplitPattern::gpt2);
    for (const std::string& document : documents) trainer.add(document);
    trainer.train(f.trained_vocabulary);
  });
  return f;
}

}  // namespace rankine

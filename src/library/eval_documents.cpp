#include "library/eval_documents.h"

#include "data/document_reader.h"
#include "data/text_report.h"
#include "data/token_source.h"

namespace rankine {
namespace {

using Use = std::function<void(const EvalDocument&)>;

void read_texts(const TextOptions& options, const std::vector<DataFile>& files, Log& log,
                const Use& use) {
  TextReader reader(files);
  TextReport report(files, options.bad_lines);
  JsonLines lines;
  TextPiece piece;
  std::string whole;  // a document of text, as far as it was read
  uint32_t file = 0;
  int64_t index = 0;
  while (reader.next(piece)) {
    if (piece.file != file) index = 0;
    file = piece.file;
    PieceReport of_piece;
    of_piece.file = file;
    if (piece.is_lines) {
      lines.read_field(piece.bytes, options.text_field, of_piece.lines, [&](std::string_view text) {
        use({files[file].path, index++, text});
      });
    } else {
      whole += piece.bytes;
      if (piece.ends) {
        use({files[file].path, index++, whole});
        whole.clear();
      }
    }
    report.add(of_piece);
  }
  report.finish();
  for (const std::string& note : report.notes()) warn_line(log, "{}", note);
}

void read_tokens(const DataFile& file, const TextTokenizer* tokenizer, const Use& use) {
  const TokenData data = TokenData::open({file});
  require(!data.has_samples(), ErrorKind::data,
          "'{}' holds samples of instructions; eval scores running text", file.path.string());
  require(data.facts() == nullptr || tokenizer == nullptr ||
              data.facts()->tokenizer_hash == tokenizer->bpe().hash(),
          ErrorKind::data, "'{}' was made with another tokenizer than the model's",
          file.path.string());
  EvalDocument document{file.path, 0, {}, std::vector<int32_t>(data.count()), true};
  data.copy(0, data.count(), document.ids.data());
  use(document);
}

}  // namespace

void for_each_document(const TextOptions& options, const TextTokenizer* tokenizer, Log& log,
                       const Use& use) {
  const std::vector<DataFile> files = list_files(options);
  require(files.front().format != DataFormat::instructions, ErrorKind::usage,
          "--data-format instructions: eval scores running text; name a --text-field of the lines");
  if (files.front().holds_text()) return read_texts(options, files, log, use);
  for (const DataFile& file : files) read_tokens(file, tokenizer, use);
}

}  // namespace rankine

#include "eval_documents.h"

#include "base/file.h"
#include "checkpoint/json.h"
#include "data/data_files.h"
#include "data/token_source.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;
using Use = std::function<void(const EvalDocument&)>;

void read_lines(const fs::path& file, std::string_view text, const Use& use) {
  int64_t number = 0, index = 0;
  for (size_t at = 0; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string what = fmt::format("'{}' line {}", file.string(), number + 1);
    const nlohmann::json json = parse_json(line, what);
    const std::string& document = JsonObject(json, what).text("text");
    use({file, index++, document, {}, false});
  }
}

void read_tokens(const fs::path& file, DataFormat format, const Use& use) {
  DataOptions options;
  options.data = {file};
  options.format = format;
  const TokenData data = TokenData::open(options);
  EvalDocument document{file, 0, {}, std::vector<int32_t>(data.count()), true};
  data.copy(0, data.count(), document.ids.data());
  use(document);
}

}  // namespace

void for_each_document(const std::vector<fs::path>& files, DataFormat format, const Use& use) {
  for (const fs::path& file : expand_paths(files)) {
    const bool lines = file.extension() == ".jsonl";
    const DataFormat kind = lines ? DataFormat::text : detect_format(file, format);
    if (kind != DataFormat::text) {
      read_tokens(file, kind, use);
      continue;
    }
    const MappedFile map(file);
    std::string_view text(reinterpret_cast<const char*>(map.data()), map.size());
    constexpr std::string_view mark = "\xEF\xBB\xBF";  // not text
    if (text.starts_with(mark)) text.remove_prefix(mark.size());
    if (lines)
      read_lines(file, text, use);
    else
      use({file, 0, text, {}, false});
  }
}

}  // namespace rankine

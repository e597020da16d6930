#include "data/data_checks.h"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>

namespace rankine {
namespace {

std::string_view kind_of(const DataFile& file) {
  switch (file.format) {
    case DataFormat::jsonl:
      return "JSON lines of text";
    case DataFormat::instructions:
      return "JSON lines of instructions";
    case DataFormat::tokens:
      return "a token file, which says all of itself";
    default:
      return file.holds_text() ? "plain text" : "a file of raw tokens";
  }
}

// Options, and the files on which they have an effect.
struct Rule {
  std::vector<std::string_view> names;
  std::function<bool(const DataFile&)> reads;
};

std::vector<Rule> rules() {
  const auto is_lines = [](const DataFile& file) { return file.is_lines(); };
  const auto is_text_lines = [](const DataFile& file) { return file.format == DataFormat::jsonl; };
  const auto is_instructions = [](const DataFile& file) {
    return file.format == DataFormat::instructions;
  };
  const auto is_text = [](const DataFile& file) { return file.holds_text(); };
  // Our own token files say where documents end; of others' it is asked for.
  const auto lacks_ends = [](const DataFile& file) { return file.format != DataFormat::tokens; };
  return {{{"text-field"}, is_text_lines},
          {{"bad-lines"}, is_lines},
          {{"prompt-field", "response-field", "messages-field", "ignore-fields", "chat-template",
            "chat-template-kwargs"},
           is_instructions},
          {{"end-token"}, lacks_ends},
          {{"begin-token", "data-cache"}, is_text}};
}

}  // namespace

void refuse_idle_options(const OptionTable& table, const std::vector<DataFile>& files) {
  std::vector<std::string_view> idle;
  for (const Rule& rule : rules())
    if (std::ranges::none_of(files, rule.reads))
      idle.insert(idle.end(), rule.names.begin(), rule.names.end());
  refuse_without_effect(table, idle,
                        fmt::format("on the data, since '{}' is {}", files.front().path.string(),
                                    kind_of(files.front())));
}

void require_distinct(const std::vector<DataFile>& files) {
  std::map<std::pair<dev_t, ino_t>, std::filesystem::path> seen;
  for (const DataFile& file : files) {
    struct stat facts {};
    const std::filesystem::path bytes =
        file.format == DataFormat::megatron ? megatron_bin(file.path) : file.path;
    if (::stat(bytes.c_str(), &facts) != 0) continue;  // reading it will say so
    const auto [first, is_new] = seen.emplace(std::pair{facts.st_dev, facts.st_ino}, file.path);
    require(is_new, ErrorKind::usage,
            "--data: '{}' and '{}' are the same file, which would count twice; name it once (for a "
            "larger share of the samples give it a weight in --data-weights)",
            first->second.string(), file.path.string());
  }
}

}  // namespace rankine

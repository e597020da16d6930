#include "library/train_text.h"

#include "checkpoint/generation_settings.h"

namespace rankine {
namespace {

// The template that samples are, or were, made with.
std::optional<ChatTemplate> sample_template(const TrainOptions& o, const DataFile& first,
                                            const TextTokenizer& tokenizer) {
  if (first.format == DataFormat::instructions) return chosen_template(o.data.text.chat, tokenizer);
  const bool has_own = ChatTemplate::lies_in(tokenizer.chat_template_files());
  if (first.format != DataFormat::tokens || !has_own) return std::nullopt;
  const TokenData data = TokenData::open({first});
  return data.has_samples() ? std::optional(tokenizer.chat_template()) : std::nullopt;
}

}  // namespace

TrainingText training_text(const TrainOptions& o, const ModelSource& source,
                           const DataSource& data) {
  TrainingText out;
  out.tokenizer = training_tokenizer(o, source, data);
  require(out.tokenizer || (o.data.begin_token.empty() && o.data.end_token.empty()),
          ErrorKind::usage, "--begin-token and --end-token need a --tokenizer, which knows tokens");
  if (!out.tokenizer) return out;
  out.tokenizer =
      with_bounds_of(*out.tokenizer, source.config, o.data.begin_token, o.data.end_token);
  const DataFile& first = data.corpora.front().front();
  const std::optional<ChatTemplate> chat = sample_template(o, first, *out.tokenizer);
  if (!chat) {
    if (data.holds_text() || out.tokenizer->bpe().special().end >= 0)
      out.taught_ends.push_back(out.tokenizer->end_token());
    return out;
  }
  const ReplyMarks marks = reply_marks(*chat, out.tokenizer->bpe());
  if (marks.end_token >= 0)
    out.taught_ends.push_back(marks.end_token);
  else
    out.warnings.push_back(fmt::format(
        "the chat template ({}) ends replies with no token, so that the model does not learn to "
        "stop by one",
        chat->name()));
  // So that who chats with the model later does it in the form that it has learned.
  const std::string& named = o.data.text.chat.name;
  if (first.format == DataFormat::instructions && !named.empty() && named != "none")
    out.tokenizer = out.tokenizer->with_file("chat_template.jinja", chat->text());
  return out;
}

ExtraFiles run_files(const TrainingText& text, const ModelSource& source, bool from_scratch) {
  ExtraFiles files = text.tokenizer ? text.tokenizer->files() : ExtraFiles{};
  const bool own = source.kind != ModelSource::Kind::preset && !from_scratch;
  if (own && !source.generation_config.empty())
    files["generation_config.json"] =
        with_ends(source.generation_config, text.taught_ends, "generation_config.json");
  return files;
}

}  // namespace rankine

#include <xxhash.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/file.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/read_model.h"
#include "data/tokenizer/special_texts.h"
#include "data/tokenizer/tokenizer_files.h"

// What a tokenizer.json says, place by place.
namespace rankine {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Libraries save what they were last called with: how batches of texts are cut and filled up. It is
// no part of what a text's ids are.
constexpr std::array settings_of_calls{"truncation", "padding"};

AddedToken read_added_token(const JsonPlace& place) {
  JsonMembers members(place);
  AddedToken token;
  token.id = static_cast<int32_t>(members.at("id").integer(0, INT32_MAX));
  token.content = members.at("content").text();
  members.place().need(!token.content.empty(), "an added token without content");
  token.special = members.flag_or("special", false);
  token.single_word = members.flag_or("single_word", false);
  token.takes_left = members.flag_or("lstrip", false);
  token.takes_right = members.flag_or("rstrip", false);
  token.in_normalized = members.flag_or("normalized", !token.special);
  members.finish();
  return token;
}

}  // namespace

BpeTokenizer BpeTokenizer::open(const fs::path& path) {
  const bool of_folder = is_folder(path);
  const fs::path folder = of_folder ? path : path.parent_path();
  const fs::path file = of_folder ? path / "tokenizer.json" : path;
  const TokenizerSettings settings = read_tokenizer_settings(folder);
  if (of_folder && !is_there(file)) {
    require(is_there(folder / "vocab.json") && is_there(folder / "merges.txt"), ErrorKind::data,
            "'{}' has neither a tokenizer.json nor a vocab.json and merges.txt; other tokenizer "
            "files are not read",
            path.string());
    return parse(json_of_vocabulary_files(folder), (folder / "vocab.json").string(), settings);
  }
  return parse(read_text(file), file.string(), settings);
}

BpeTokenizer BpeTokenizer::parse(std::string_view text, const std::string& file,
                                 const TokenizerSettings& settings) {
  Json root = parse_tokenizer_json(text, file);
  BpeTokenizer out(JsonPlace(root, file), text);
  for (const char* key : settings_of_calls)
    if (root.contains(key)) root[key] = nullptr;
  const std::string canonical = root.dump();
  out.hash_ = XXH3_64bits(canonical.data(), canonical.size());
  out.read_special(settings, file);
  return out;
}

BpeTokenizer::BpeTokenizer(const JsonPlace& root, std::string_view text) : json_(text) {
  JsonMembers members(root);
  members.skip("version");
  for (const char* key : settings_of_calls) {
    members.skip(key);
    if (members.has(key))
      notes_.push_back(fmt::format(
          "{}: '{}' is a setting of the call that used the tokenizer last, and is not applied",
          root.name(), key));
  }
  const Json none;
  const auto part = [&](const char* key) {
    return members.has(key) ? members.at(key) : (members.skip(key), root.child(none, key));
  };
  normalizer_ = Normalizer(part("normalizer"));
  pre_tokenizer_ = PreTokenizer(part("pre_tokenizer"));
  decoder_ = TextDecoder(part("decoder"));
  const JsonPlace model = members.at("model");
  root.need(pre_tokenizer_.by_bytes() == decoder_.by_bytes(),
            "pre_tokenizer and decoder must both be ByteLevel, or neither");
  // Elsewhere a piece is the first when its text is, so that what Prepend adds makes two of them.
  root.need(!(normalizer_.prepends() && pre_tokenizer_.marks_first_piece()),
            "Prepend, and Metaspace with prepend_scheme 'first' behind another pre-tokenizer, are "
            "not understood together");
  model_ = std::make_unique<BpeModel>(read_model(model, pre_tokenizer_.by_bytes()));
  for (const std::string& token : model_->tokens()) is_token_.push_back(!token.empty());
  const size_t model_tokens = is_token_.size();
  if (members.has("added_tokens")) read_added(members.at("added_tokens"), model_tokens);
  members.skip("added_tokens");
  read_template(part("post_processor"));
  members.finish();
  // SentencePiece's words begin at spaces, which no merge crosses: to cut there changes no id.
  const std::string space = "\xE2\x96\x81";
  if (!pre_tokenizer_.by_bytes() && model_->can_cut_before(space))
    pre_tokenizer_.add({.kind = SplitStep::Kind::before_marks, .mark = space});
  keeps_text_ = pre_tokenizer_.by_bytes() && normalizer_.empty() && !pre_tokenizer_.adds_text() &&
                !raw_added_.loses_white_space() && !normalized_added_.loses_white_space();
}

void BpeTokenizer::read_added(const JsonPlace& list, size_t model_tokens) {
  std::array<std::vector<AddedToken>, 2> tokens;
  std::array<std::vector<std::string>, 2> contents;
  std::unordered_map<std::string, int32_t> seen;
  const size_t most_ids = 2 * (model_tokens + list.array().size()) + 65536;
  for (size_t i = 0; i < list.array().size(); ++i) {
    const JsonPlace place = list.child(list.array()[i], i);
    const AddedToken token = read_added_token(place);
    const auto id = static_cast<size_t>(token.id);
    place.need(id < most_ids, "id {} is far beyond the {} tokens there are", id,
               model_tokens + list.array().size());
    place.need(seen.emplace(token.content, token.id).second && !added_.contains(token.id),
               "'{}' with id {} is there twice", token.content, token.id);
    if (id < model_tokens && is_token_[id])
      place.need(same_token(*model_, token), "id {} is '{}' in the vocabulary, not '{}'", id,
                 model_->tokens()[id], token.content);
    if (id >= is_token_.size()) is_token_.resize(id + 1, false);
    is_token_[id] = true;
    added_.emplace(token.id, token);
    std::string buffers[2];
    const bool normal = token.in_normalized;
    contents[normal].emplace_back(normal ? normalizer_.apply(token.content, buffers)
                                         : std::string_view(token.content));
    tokens[normal].push_back(token);
  }
  std::vector<AddedToken> all;
  std::vector<std::string> spelled;
  for (const auto& [id, token] : added_) {
    all.push_back(token);
    spelled.push_back(token.content);
  }
  all_added_ = AddedTokens(std::move(all), spelled);
  raw_added_ = AddedTokens(std::move(tokens[0]), contents[0]);
  normalized_added_ = AddedTokens(std::move(tokens[1]), contents[1]);
}

void BpeTokenizer::read_template(const JsonPlace& place) {
  if (place.value().is_null()) return;
  JsonMembers members(place);
  const JsonPlace type = members.at("type");
  if (type.text() == "Sequence") {
    const JsonPlace list = members.at("processors");
    for (size_t i = 0; i < list.array().size(); ++i) read_template(list.child(list.array()[i], i));
  } else if (type.text() == "ByteLevel") {  // moves offsets, not ids
    for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) members.skip(key);
  } else if (type.text() == "TemplateProcessing") {
    const auto [before, after] = read_template_ids(members);
    for (const int32_t id : before) place.need(is_token(id), "id {} is no token", id);
    for (const int32_t id : after) place.need(is_token(id), "id {} is no token", id);
    template_.before.insert(template_.before.begin(), before.begin(), before.end());
    template_.after.insert(template_.after.end(), after.begin(), after.end());
  } else {
    type.refuse(
        "post-processor '{}' is not understood; ByteLevel, TemplateProcessing and Sequence are",
        type.text());
  }
  members.finish();
}

void BpeTokenizer::read_special(const TokenizerSettings& settings, const std::string& file) {
  const fs::path path = file;
  // These two files are GPT-2's own; tokenizer.json is every class's.
  const bool is_gpt2 = path.filename() == "vocab.json";
  const SpecialTexts texts =
      special_texts(settings, path.parent_path(), is_gpt2 ? "GPT2Tokenizer" : "");
  if (texts.known)
    special_ = {.begin = token_id(texts.begin),
                .end = token_id(texts.end),
                .pad = token_id(texts.pad),
                .unknown = token_id(texts.unknown)};
  else
    guess_special();
  const auto put = [](TokenIds& around, int32_t id, bool wanted) {
    if (id >= 0) std::erase(around, id);
    if (id >= 0 && wanted) around.insert(around.begin(), id);
  };
  if (texts.adds_begin) put(template_.before, special_.begin, *texts.adds_begin);
  if (texts.adds_end) put(template_.after, special_.end, *texts.adds_end);
}

// Where no file says anything only the names in common use are left to go by.
void BpeTokenizer::guess_special() {
  const auto first_of = [&](std::initializer_list<const char*> names) -> int32_t {
    for (const char* name : names)
      if (const int32_t id = added_id(name); id >= 0) return id;
    return -1;
  };
  special_.begin = first_of({"<s>", "<|begin_of_text|>", "<bos>"});
  special_.end = first_of({"</s>", "<|end_of_text|>", "<eos>", "<|endoftext|>"});
  special_.unknown = first_of({"<unk>"});
}

}  // namespace rankine

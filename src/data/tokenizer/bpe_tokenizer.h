#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/bpe_model.h"
#include "data/tokenizer/normalizer.h"
#include "data/tokenizer/piece_start.h"
#include "data/tokenizer/pre_tokenizer.h"
#include "data/tokenizer/special_texts.h"
#include "data/tokenizer/text_decoder.h"
#include "data/tokenizer/word_cache.h"

// Text to token ids and back, as a Hugging Face tokenizer.json says: byte-level BPE and
// SentencePiece's BPE. Rule: ids equal those of the file's own library, or the file is refused.
// Any number of threads may use one tokenizer.
namespace rankine {

struct EncodeOptions {
  bool add_special = false;    // what the tokenizer puts before and after texts, as a "<s>"
  bool parse_special = false;  // added tokens spelled out in the text become those tokens
  PieceStart start = PieceStart::text;  // of what the text is a part of
};

struct SpecialIds {
  int32_t begin = -1, end = -1, pad = -1, unknown = -1;  // -1: there is none
};

class BpeTokenizer {
 public:
  // A tokenizer.json, a folder with one, or a folder with GPT-2's vocab.json and merges.txt.
  // Error{data} with file and place for what is damaged or not understood.
  static BpeTokenizer open(const std::filesystem::path& path);
  // From the texts of tokenizer.json and of the files beside it; `file` is for messages.
  static BpeTokenizer parse(std::string_view json, const std::string& file,
                            const TokenizerSettings& settings = {});

  // Convenient, and slower than an Encoder, which remembers words.
  TokenIds encode(std::string_view text, EncodeOptions options = {}) const;
  // The bytes of these tokens. Error{data} for an id that is no token.
  std::string decode(const TokenIds& ids, bool skip_special = false) const;

  int64_t vocabulary() const { return static_cast<int64_t>(is_token_.size()); }  // largest id + 1
  // Likewise of what text becomes by itself: without special tokens that must be asked for. A model
  // needs these rows at least.
  int64_t text_vocabulary() const;
  bool is_token(int32_t id) const {
    return id >= 0 && id < vocabulary() && is_token_[static_cast<size_t>(id)];
  }
  bool is_special(int32_t id) const;
  // Whether decode gives back any text, byte for byte.
  bool keeps_text() const { return keeps_text_; }
  const SpecialIds& special() const { return special_; }
  // What stands in front of every text, as a "<s>"; mostly nothing or one token.
  const TokenIds& begins() const { return template_.before; }
  // A token as the vocabulary spells it; token_id() of it is `id`. Error{data} for no token.
  std::string spelled(int32_t id) const {
    check_id(id);
    return std::string(token(id));
  }
  // The first added token, special or not, that is spelled out in the text.
  std::optional<AddedTokens::Found> first_added(std::string_view text) const {
    return all_added_.first(text);
  }
  // All of them, as they are spelled.
  const AddedTokens& all_added() const { return all_added_; }
  // The text of an added token, "" of any other.
  std::string_view added_text(int32_t id) const;
  // Whether `text` has a special token spelled in it.
  bool spells_special(std::string_view text) const;
  // The id of an added token by its text, or -1.
  int32_t added_id(std::string_view content) const;
  // The id of an added token, or of an ordinary one with these bytes, or -1.
  int32_t token_id(std::string_view content) const;
  // Whether the ids of a text are those of its parts, one after the other, when it is cut between
  // an ASCII letter or digit and a line end.
  bool can_cut_at_lines() const;
  // What the file says that is not applied, for the user.
  const std::vector<std::string>& notes() const { return notes_; }
  // Of what the file says of ids and text, whatever its layout and the order of its keys.
  uint64_t hash() const { return hash_; }
  // The text of a tokenizer.json that gives this tokenizer.
  const std::string& json() const { return json_; }

 private:
  friend class Encoder;
  friend class StreamDecoder;
  struct Template {
    TokenIds before, after;
  };
  BpeTokenizer(const JsonPlace& root, std::string_view json);
  void read_added(const JsonPlace& list, size_t model_tokens);
  void read_template(const JsonPlace& place);
  void read_special(const TokenizerSettings& settings, const std::string& file);
  void guess_special();
  void check_id(int32_t id) const;
  // What the decoder gets for this id.
  std::string_view token(int32_t id) const;

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  std::unique_ptr<const BpeModel> model_;
  AddedTokens raw_added_, normalized_added_, all_added_;
  std::unordered_map<int32_t, AddedToken> added_;
  TextDecoder decoder_;
  Template template_;
  SpecialIds special_;
  std::vector<bool> is_token_;
  bool keeps_text_ = false;
  std::vector<std::string> notes_;
  uint64_t hash_ = 0;
  std::string json_;
};

// Encodes text after text and remembers words it has seen. One for each thread; the tokenizer must
// outlive it.
class Encoder {
 public:
  explicit Encoder(const BpeTokenizer& tokenizer) : tokenizer_(tokenizer) {}
  // Appends the ids of `text`.
  void encode(std::string_view text, EncodeOptions options, TokenIds& out);

 private:
  void encode_piece(std::string_view piece, PieceStart start, bool parse_special, TokenIds& out);
  void encode_word(std::string_view word, TokenIds& out);

  const BpeTokenizer& tokenizer_;
  WordCache cache_;
  BpeModel::Scratch scratch_;
  std::string buffers_[2];
};

// Decodes tokens as they come. What it has given out never ends within a UTF-8 character.
class StreamDecoder {
 public:
  explicit StreamDecoder(const BpeTokenizer& tokenizer, bool skip_special = false)
      : tokenizer_(tokenizer), skip_special_(skip_special) {}
  std::string push(int32_t id);  // the text that is complete now; may be empty
  std::string finish();          // the bytes still held back

 private:
  const BpeTokenizer& tokenizer_;
  bool skip_special_;
  TextDecoder::State state_;
  std::string held_;
};

}  // namespace rankine

#include <algorithm>
#include <sstream>

#include "support/hf_folder.h"
#include "support/tokenizer_json.h"
#include "training_run.h"

// Where a text ends, as a user sees it: what is printed, what is counted and why it ended agree,
// one by one and together.
namespace rankine::test {
namespace {

const std::vector<std::string> pieces{"xa", "ST", "OP", "fooSTOPbar", "abcde", "go", "STO"};
constexpr const char *end = "<|end|>", *mark = "<|mark|>";

class StopTexts : public TrainingRun {
 protected:
  static constexpr int64_t vocabulary = 258 + 8;
  static int32_t id_of(const std::string& token) {
    if (token.size() == 1) return static_cast<uint8_t>(token[0]);
    if (token == end) return 256;
    if (token == mark) return 257;
    const auto at = std::ranges::find(pieces, token);
    return static_cast<int32_t>(258 + (at - pieces.begin()));
  }
  // A model that writes these tokens behind "go".
  void write_model(const std::vector<std::string>& tokens) {
    std::vector<int32_t> chain{id_of("go")};
    for (const std::string& token : tokens) chain.push_back(id_of(token));
    write_hf_folder(home() / "m", hf_chain_model(chain, vocabulary),
                    {.files = {{"tokenizer.json",
                                byte_level_json({.special = {end, mark}, .plain = pieces}).dump()},
                               {"tokenizer_config.json", Json{{"eos_token", end}}.dump()}}});
  }
  Finished generate(std::vector<std::string> more) {
    std::vector<std::string> words{"generate", "--model",   at("m"), "--temperature",
                                   "0",        "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    Finished done = run(words);
    EXPECT_EQ(done.code, 0) << done.err;
    return done;
  }
};

struct Trial {
  std::vector<std::string> tokens, stops;
  std::string text, reason;
  int64_t limit, counted;  // tokens
};

TEST_F(StopTexts, PrintedCountedAndReasonAgree) {
  const std::vector<Trial> trials{
      {{"n", "ST", "OP", "z"}, {"STOP"}, "n", "stop", 9, 3},
      {{"n", "ST", "OP"}, {"STOP"}, "n", "stop", 3, 3},      // found with the last token
      {{"n", "ST", "OP"}, {"STOP"}, "nST", "length", 2, 2},  // one too few
      {{"n", "ST", end}, {"STOP"}, "nST", "stop", 9, 2},     // let go at the end token
      {{"n", "fooSTOPbar"}, {"bar", "STOP"}, "nfoo", "stop", 9, 2},
      {{"abcde", "z"}, {"bc", "abcd"}, "a", "stop", 9, 1},
      {{"n", mark, "z"}, {mark}, "n", "stop", 9, 2},
      {{"n", "\xC3", "\xA9", "z"}, {"\u00e9z"}, "n", "stop", 9, 4},
      {{"n", "\xC3", "\xA9"}, {"x"}, "n\xEF\xBF\xBD", "length", 2, 2},
      {{"ST", "OP"}, {"STOP"}, "", "stop", 9, 2},
      {{end}, {}, "", "stop", 9, 0}};
  for (const Trial& t : trials) {
    SCOPED_TRACE(::testing::PrintToString(t.tokens) + " " + ::testing::PrintToString(t.stops));
    write_model(t.tokens);
    std::vector<std::string> words{"--prompt-ids", std::to_string(id_of("go")),
                                   "--tokenizer",  at("m"),
                                   "--max-tokens", std::to_string(t.limit)};
    if (!t.stops.empty()) words.emplace_back("--stop");
    words.insert(words.end(), t.stops.begin(), t.stops.end());
    const Finished streamed = generate(words);
    // On a terminal a character that never ended is no text; in JSON its token is accounted for.
    const std::string shown =
        t.text.ends_with("\xEF\xBF\xBD") ? t.text.substr(0, t.text.size() - 3) : t.text;
    EXPECT_EQ(streamed.out, shown + "\n");
    EXPECT_NE(streamed.err.find(std::to_string(t.counted) + " tokens in "), std::string::npos)
        << streamed.err;
    words.emplace_back("--json");
    const Json json = Json::parse(generate(words).out);
    EXPECT_EQ(json["text"], t.text);
    EXPECT_EQ(json["finish_reason"], t.reason);
    EXPECT_EQ(static_cast<int64_t>(json["tokens"].size()), t.counted);
  }
}

TEST_F(StopTexts, SeveralTextsAtOnceEndEachByItself) {
  write_model({"a", "b", "c", "d", "e", "f", "g", end});
  const std::vector<std::string> prompts{"a", "c", "f", "xe", "g"};
  std::vector<std::string> words{"--max-tokens", "3", "--stop", "cde", "d", "ga", "--prompt"};
  words.insert(words.end(), prompts.begin(), prompts.end());
  std::string printed;
  // "cde" is begun behind "a" and let go when "d" is there.
  const std::vector<std::string> expected{"bc", "", "g", "fg", ""};
  for (size_t i = 0; i < prompts.size(); ++i)
    printed += (i == 0 ? "" : "\n") + std::string("--- ") + std::to_string(i + 1) + " of 5\n" +
               prompts[i] + expected[i] + "\n";
  for (const std::string batch : {"1", "2", "8"}) {
    std::vector<std::string> all{"--batch-size", batch};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_EQ(generate(all).out, printed) << batch;
    all.emplace_back("--json");
    std::istringstream lines(generate(all).out);
    size_t i = 0;
    for (std::string line; std::getline(lines, line); ++i) {
      const Json json = Json::parse(line);
      EXPECT_EQ(json["text"], expected[i]) << line;
      EXPECT_EQ(json["finish_reason"], "stop") << line;
    }
    EXPECT_EQ(i, prompts.size());
  }
}

TEST_F(StopTexts, ThatCannotBeAreRefused) {
  write_model({"a"});
  for (const std::string stop : {"", "\xC3"}) {
    const Finished done = run({"generate", "--model", at("m"), "--prompt", "x", "--stop", stop});
    EXPECT_EQ(done.code, 2) << done.err;
    EXPECT_NE(done.err.find("stop text"), std::string::npos) << done.err;
  }
}

}  // namespace
}  // namespace rankine::test

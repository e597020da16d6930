#include "data/instructions.h"

#include <gtest/gtest.h>

#include <set>

#include "data/corpus.h"
#include "data/tokenize.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

using test::message_of;
using test::TemporaryFolder;
using Tokens = std::vector<int32_t>;

struct Made {
  std::vector<uint32_t> tokens;  // as stored
  TokenFileFacts facts;
  std::vector<std::string> warnings;
};

TextOptions options_of(const std::string& chat_template = "") {
  TextOptions options;
  options.format = DataFormat::instructions;
  options.bad_lines = 1;
  options.chat.name = chat_template;
  return options;
}

void make(const TemporaryFolder& folder, const std::string& lines, const TextOptions& options) {
  const TokenizeJob job = tokenize_job(
      list_files({folder.write("i.jsonl", lines)}, {.format = DataFormat::instructions}), options,
      TextTokenizer::bytes());
  TokenFileWriter writer(folder / "out");
  tokenize(job, writer, 2, [](const TokenizeProgress&) {});
}

TokenData open_made(const TemporaryFolder& folder) {
  return TokenData::open({{folder / "out", DataFormat::tokens}});
}

constexpr uint32_t b = sample_begin, t = sample_target;

TEST(Instructions, RepliesAreTargetsAndSamplesAreMarked) {
  const TemporaryFolder folder;
  make(folder,
       "{\"prompt\": \"ab\", \"response\": \"c\"}\n"
       "{\"response\": \"\", \"prompt\": \"d\"}\n"
       "{\"prompt\": \"no answer\"}\n"
       "{\"text\": \"x\"}\n"
       "{\"messages\": [{\"role\": \"user\", \"content\": \"q\"}]}\n"
       "{\"messages\": [{\"role\": \"user\"}]}\n"
       "{\"messages\": \"q\"}\n",
       options_of());
  const TokenData data = open_made(folder);
  ASSERT_EQ(data.count(), 6U);
  std::vector<uint32_t> stored(6);
  data.copy_marked(0, 6, stored.data());
  EXPECT_EQ(stored, (std::vector<uint32_t>{'a' | b, 'b', 'c' | t, 256 | t, 'd' | b, 256 | t}));
  Tokens plain(6);
  data.copy(0, 6, plain.data());
  EXPECT_EQ(plain, (Tokens{'a', 'b', 'c', 256, 'd', 256}));
  EXPECT_EQ(data.largest_id(0, 6), 256U);
  EXPECT_NO_THROW(data.check_vocabulary(257));
  ASSERT_EQ(data.warnings().size(), 1U);
  for (const char* reason :
       {"5 of 7 JSON lines are bad", ":3: no \"response\"",
        ":4: neither \"messages\" nor \"prompt\"", ":5: messages need a chat template",
        ":6: no \"content\"", ":7: \"messages\" is a string, not a list"})
    EXPECT_NE(data.warnings()[0].find(reason), std::string::npos) << data.warnings()[0];
}

TEST(Instructions, SamplesAreWholeInWindowsAndLongOnesCut) {
  const TemporaryFolder folder;
  make(folder,
       "{\"prompt\": \"abc\", \"response\": \"d\"}\n"      // 4 places
       "{\"prompt\": \"e\", \"response\": \"f\"}\n"        // 2
       "{\"prompt\": \"g\", \"response\": \"hi\"}\n"       // 3: into the next window
       "{\"prompt\": \"j\", \"response\": \"klmnopq\"}\n"  // 8: cut
       "{\"prompt\": \"r\", \"response\": \"\"}\n",        // 1
       options_of());
  const Corpus corpus(open_made(folder), 6);
  ASSERT_EQ(corpus.windows(), 4U);
  EXPECT_EQ(corpus.cut_samples(), 1U);
  const auto window = [&](uint64_t number) {
    Tokens inputs(6, 99), targets(6, 99);
    corpus.fill(number, {inputs.data(), targets.data()});
    return std::pair(inputs, targets);
  };
  EXPECT_EQ(window(0), std::pair(Tokens({'a', 'b', 'c', 'd', 'e', 'f'}),
                                 Tokens({-1, -1, 'd', 256, 'f', 256})));
  EXPECT_EQ(window(1),
            std::pair(Tokens({'g', 'h', 'i', 0, 0, 0}), Tokens({'h', 'i', 256, -1, -1, -1})));
  EXPECT_EQ(window(2), std::pair(Tokens({'j', 'k', 'l', 'm', 'n', 'o'}),
                                 Tokens({'k', 'l', 'm', 'n', 'o', 'p'})));
  EXPECT_EQ(window(3), std::pair(Tokens({'r', 0, 0, 0, 0, 0}), Tokens({256, -1, -1, -1, -1, -1})));
}

TEST(Instructions, FirstKeysAreWhereSamplesBegin) {
  const TemporaryFolder folder;
  make(folder,
       "{\"prompt\": \"abc\", \"response\": \"d\"}\n{\"prompt\": \"e\", \"response\": \"f\"}\n",
       options_of());
  const Corpus corpus(open_made(folder), 8);
  EXPECT_TRUE(corpus.knows_documents());
  Tokens inputs(8), targets(8), first_keys(8);
  corpus.fill(0, {inputs.data(), targets.data(), first_keys.data()});
  EXPECT_EQ(first_keys, (Tokens{0, 0, 0, 0, 4, 4, 6, 6}));
}

// Every token of every sample that fits is in exactly one window, whatever the lengths.
TEST(Instructions, PackingLosesNothing) {
  const TemporaryFolder folder;
  std::string lines;
  uint64_t targets_written = 0, longest = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    const uint64_t prompt = 1 + i * 7919 % 40, reply = i * 104729 % 50;
    lines += fmt::format("{{\"prompt\": \"{}\", \"response\": \"{}\"}}\n", std::string(prompt, 'p'),
                         std::string(reply, 'r'));
    targets_written += reply + 1;
    longest = std::max(longest, prompt + reply);
  }
  make(folder, lines, options_of());
  for (const uint64_t length : {longest, longest + 1, uint64_t{128}, uint64_t{1000}}) {
    const Corpus corpus(open_made(folder), length);
    EXPECT_EQ(corpus.cut_samples(), 0U);
    uint64_t targets_seen = 0;
    Tokens inputs(length), targets(length);
    for (uint64_t w = 0; w < corpus.windows(); ++w) {
      corpus.fill(w, {inputs.data(), targets.data()});
      for (const int32_t target : targets) targets_seen += target >= 0 ? 1 : 0;
    }
    EXPECT_EQ(targets_seen, targets_written) << length;
  }
}

TEST(Instructions, TheTemplateIsTheTokenizersUnlessNamed) {
  const TextTokenizer plain = TextTokenizer::bytes();
  const auto chosen = [](const std::string& name, const TextTokenizer& tokenizer) {
    return chosen_template({.name = name, .kwargs = ""}, tokenizer);
  };
  EXPECT_FALSE(chosen("", plain));
  EXPECT_FALSE(chosen("none", plain));
  EXPECT_EQ(chosen("chatml", plain)->name(), "chatml");
  EXPECT_NE(message_of([&] { chosen("no such", plain); }), "");
  EXPECT_NE(message_of([&] { chosen_template({.name = "none", .kwargs = "{}"}, plain); }), "");
  const TextTokenizer chat = TextTokenizer::parse(plain.file("tokenizer.json"),
                                                  R"({"eos_token": "<|endoftext|>",
          "chat_template": "{% for m in messages %}<|im_start|>{{ m.role }}<|im_end|>{% endfor %}"})",
                                                  "chat");
  EXPECT_EQ(chosen("", chat)->name(), "the model's own");
  EXPECT_FALSE(chosen("none", chat));
}

// Members of the data that say what is learned, and those that nobody here knows.
TEST(Instructions, KeysAreHonouredOrRefusedByName) {
  const TemporaryFolder folder;
  const auto stored = [&](const std::string& lines, const TextOptions& options) {
    std::filesystem::remove(folder / "out");
    make(folder, lines, options);
    const TokenData data = open_made(folder);
    std::vector<uint32_t> out(data.count());
    data.copy_marked(0, data.count(), out.data());
    return out;
  };
  const std::string question = R"({"role": "user", "content": "q"})";
  const auto line = [&](const std::string& reply, const std::string& more = "") {
    return R"({"messages": [)" + question + ", " + reply + "]" + more + "}\n";
  };
  const auto replies = [](const std::vector<uint32_t>& tokens) {
    return std::ranges::count_if(tokens, [](uint32_t token) { return (token & t) != 0; });
  };
  const std::string learned = R"({"role": "assistant", "content": "r")";
  const std::string plain = learned + "}";
  for (const char* no : {R"(, "weight": 0})", R"(, "weight": 0.0})", R"(, "train": false})",
                         R"(, "trainable": false})"}) {
    const auto tokens = stored(line(plain) + line(learned + no), options_of("plain"));
    EXPECT_EQ(replies(tokens), 3) << no;  // " r" and its end, of the first
    EXPECT_EQ(open_made(folder).warnings().size(), 1U) << no;
  }
  EXPECT_EQ(replies(stored(line(learned + R"(, "weight": 1, "name": null})"), options_of("plain"))),
            3);
  const auto refused = [&](const std::string& lines, const std::string& word) {
    const Error error = test::error_of([&] {
      std::filesystem::remove(folder / "out");
      make(folder, lines, options_of("plain"));
    });
    EXPECT_EQ(error.kind(), ErrorKind::usage) << error.what();
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  };
  refused(line(learned + R"(, "weight": 0.5})"), "0.5");
  refused(line(learned + R"(, "mask": 1})"), "\"mask\"");
  refused(line(learned + R"(, "reasoning_content": "x"})"), "\"reasoning_content\"");
  refused(line(plain, R"(, "id": 7)"), "\"id\"");
  refused(line(plain, R"(, "tools": [])"), "\"tools\"");
  refused(line(plain, R"(, "prompt": "p")"), "\"prompt\"");
  refused(R"({"messages": [{"role": "user", "content": "q", "train": true}, )" + plain + "]}\n",
          "only the assistant's");
  TextOptions lenient = options_of("plain");
  lenient.conversation.ignored = {"id", "mask"};
  EXPECT_EQ(replies(stored(line(learned + R"(, "mask": 1})", R"(, "id": 7)"), lenient)), 3);
}

TEST(Instructions, TheKeyFollowsHowConversationsBecomeText) {
  const TemporaryFolder folder;
  const auto files =
      list_files({folder.write("i.jsonl", "{}")}, {.format = DataFormat::instructions});
  const auto key = [&](const TextOptions& options, const TextTokenizer& tokenizer) {
    return job_key(tokenize_job(files, options, tokenizer));
  };
  const TextTokenizer bytes = TextTokenizer::bytes();
  std::set<std::string> keys{key(options_of("plain"), bytes), key(options_of(), bytes),
                             key(options_of("mistral"), bytes)};
  TextOptions other = options_of("plain");
  other.conversation.response = "completion";
  keys.insert(key(other, bytes));
  other = options_of("plain");
  other.conversation.ignored = {"id"};
  keys.insert(key(other, bytes));
  const TextTokenizer own = bytes.with_file("chat_template.jinja", "{{ messages[0].content }}");
  keys.insert(key(options_of(), own));
  keys.insert(key(options_of(), bytes.with_file("chat_template.jinja", "{{ messages }}")));
  other = options_of();
  other.chat.kwargs = "{\"messages\": 1}";
  keys.insert(key(other, own));
  keys.insert(key(options_of("plain"), bytes.with_bounds("a", "")));
  keys.insert(key(options_of("plain"), bytes.with_bounds("", "a")));
  EXPECT_EQ(keys.size(), 10U);
}

}  // namespace
}  // namespace rankine

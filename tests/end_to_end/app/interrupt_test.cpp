#include <termios.h>

#include "training_run.h"

// Ctrl-C while text is written: what is printed is whole, and the exit code says what happened.
namespace rankine::test {
namespace {

// The two ends of a terminal.
class Terminal {
 public:
  Terminal() : user_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (user_ >= 0 && ::grantpt(user_) == 0 && ::unlockpt(user_) == 0)
      program_ = ::open(::ptsname(user_), O_RDWR | O_NOCTTY | O_CLOEXEC);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    ::close(program_);
    ::close(user_);
  }

  bool works() const { return program_ >= 0; }
  int program() const { return program_; }
  void type(const std::string& text) const {
    ASSERT_EQ(::write(user_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::string state() const {
    termios now{};
    EXPECT_EQ(::tcgetattr(program_, &now), 0);
    return std::to_string(now.c_iflag) + " " + std::to_string(now.c_oflag) + " " +
           std::to_string(now.c_cflag) + " " + std::to_string(now.c_lflag);
  }

 private:
  int user_ = -1, program_ = -1;
};

// A model of bytes that repeats characters of several bytes and never comes to an end by itself.
class Interrupts : public TrainingRun {
 protected:
  void SetUp() override {
    TrainingRun::SetUp();
    Json shape = Json::parse(read_text(home() / "shape" / "config.json"));
    shape["max_position_embeddings"] = 1 << 18;
    write_text_atomically(home() / "shape" / "config.json", shape.dump());
    std::string corpus;
    for (int i = 0; i < 4000; ++i)
      corpus += std::vector{"\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x98\x80 "}[i % 3];
    write_text_atomically(home() / "corpus.txt", corpus);
    const Finished done = run(train({"--steps", "100", "--seq-length", "64", "--lr", "1e-2",
                                     "--min-lr", "3e-5", "--output", at("run")}));
    ASSERT_EQ(done.code, 0) << done.err;
  }

  std::vector<std::string> words(const std::vector<std::string>& more) {
    std::vector<std::string> out{"generate", "--model",       at("run"), "--threads",
                                 "1",        "--context",     "250000",  "--max-tokens",
                                 "200000",   "--temperature", "0"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  std::unique_ptr<Command> chat(int input, const std::vector<std::string>& more = {}) {
    auto all = words({"--chat", "--chat-template", "plain"});
    all.insert(all.end(), more.begin(), more.end());
    return std::make_unique<Command>(home(), all,
                                     Start{.prepare = [input] { ::dup2(input, STDIN_FILENO); }});
  }

  // Until its output is longer than that, or has that behind the place.
  static void wait_for_bytes(const Command& command, size_t bytes) {
    while (command.running() && command.output().size() <= bytes) rest();
  }
  static void wait_for(const Command& command, const std::string& text, size_t behind) {
    while (command.running() && command.output().find(text, behind) == std::string::npos) rest();
  }
  static void rest() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

  static void expect_whole(const Finished& done) {
    EXPECT_NO_THROW(Json(done.out).dump()) << "not UTF-8: " << done.out;
    EXPECT_TRUE(done.out.ends_with("\n")) << done.out;
    EXPECT_EQ(done.err.find("rankine: "), std::string::npos) << done.err;
  }
};

TEST_F(Interrupts, AStreamedTextEndsWithAWholeCharacter) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Command command(home(), words({"--prompt", "\xC3\xA4"}));
    wait_for_bytes(command, 300);
    command.send(signal);
    const Finished done = command.wait();
    EXPECT_EQ(done.code, 128 + signal) << done.err;
    EXPECT_GT(done.out.size(), 300u);
    expect_whole(done);
    const size_t word = done.err.find("stopped; ");
    EXPECT_NE(word, std::string::npos) << done.err;
    EXPECT_EQ(done.err.find("stopped", word + 1), std::string::npos) << done.err;
  }
}

TEST_F(Interrupts, OfSeveralTextsTheWholeOnesAreThere) {
  Command command(home(), words({"--prompt", "\xC3\xA4", "--max-tokens", "50", "--num-samples",
                                 "1000000", "--batch-size", "2", "--json"}));
  wait_for_bytes(command, 2000);
  command.send(SIGINT);
  const Finished done = command.wait();
  EXPECT_EQ(done.code, 130) << done.err;
  expect_whole(done);
  int64_t sample = 0;
  for (size_t begin = 0; begin < done.out.size(); ++sample) {
    const size_t end = done.out.find('\n', begin);
    const Json line = Json::parse(done.out.substr(begin, end - begin));
    EXPECT_EQ(line["sample"], sample);
    EXPECT_TRUE(line["finish_reason"] == "stop" || line["tokens"].size() == 50u) << line;
    begin = end + 1;
  }
  EXPECT_GT(sample, 1);
}

TEST_F(Interrupts, AtATerminalAReplyEndsAndTheConversationGoesOn) {
  const Terminal terminal;
  if (!terminal.works()) GTEST_SKIP() << "no terminal to be had";
  const std::string before = terminal.state();
  const auto command = chat(terminal.program());
  size_t printed = 2;  // "> "
  std::string first;   // what the model was trained to write; later it has read other things
  for (const char* line : {"\xC3\xA4\n", "\xE2\x82\xAC\n"}) {
    terminal.type(line);
    wait_for_bytes(*command, printed + 300);
    command->send(SIGINT);
    wait_for(*command, "\n> ", printed);
    ASSERT_TRUE(command->running()) << command->errors();
    printed = command->output().size();
    if (first.empty()) first = command->output();
  }
  terminal.type("\x04");
  const Finished done = command->wait();
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_NO_THROW(Json(first).dump()) << "not UTF-8: " << first;
  EXPECT_EQ(done.err.find("rankine: "), std::string::npos) << done.err;
  EXPECT_EQ(terminal.state(), before);
}

TEST_F(Interrupts, AtATerminalThePromptAndSigtermEndTheProgram) {
  const Terminal terminal;
  if (!terminal.works()) GTEST_SKIP() << "no terminal to be had";
  const std::string before = terminal.state();
  const auto waiting = chat(terminal.program());
  wait_for(*waiting, "> ", 0);
  waiting->send(SIGINT);
  const Finished at_prompt = waiting->wait();
  EXPECT_EQ(at_prompt.code, 128 + SIGINT) << at_prompt.err;
  EXPECT_EQ(at_prompt.out, "> ");

  const auto writing = chat(terminal.program());
  wait_for(*writing, "> ", 0);
  terminal.type("\xC3\xA4\n");
  wait_for_bytes(*writing, 300);
  writing->send(SIGTERM);
  const Finished ended = writing->wait();
  EXPECT_EQ(ended.code, 128 + SIGTERM) << ended.err;
  expect_whole(ended);
  EXPECT_EQ(terminal.state(), before);
}

TEST_F(Interrupts, WithoutATerminalTheConversationEnds) {
  write_text_atomically(home() / "lines.txt", "\xC3\xA4\n\xE2\x82\xAC\n");
  const int input = ::open(at("lines.txt").c_str(), O_RDONLY | O_CLOEXEC);
  const auto command = chat(input);
  wait_for_bytes(*command, 300);
  command->send(SIGINT);
  const Finished done = command->wait();
  ::close(input);
  EXPECT_EQ(done.code, 130) << done.err;
  expect_whole(done);
  EXPECT_EQ(done.out.find('\n'), done.out.size() - 1) << "the second line was answered too";
}

}  // namespace
}  // namespace rankine::test

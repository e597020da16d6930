#pragma once
#include <nlohmann/json.hpp>

#include "support/command.h"
#include "support/temporary_folder.h"

// A small corpus and the shortest useful training command.
namespace rankine::test {

using Json = nlohmann::json;
namespace fs = std::filesystem;

inline std::string corpus_text(size_t bytes) {
  const std::string sentences[] = {
      "The engine of ranks trains models. ", "Every rank holds one share of the states.\n",
      "A gradient is a sum over uses. ", "Nothing is averaged twice; nothing is lost.\n"};
  std::string text;
  for (size_t i = 0; text.size() < bytes; ++i) text += sentences[(i * i + i / 3) % 4];
  return text;
}

class TrainingRun : public ::testing::Test {
 protected:
  void SetUp() override {
    write_text_atomically(home() / "corpus.txt", corpus_text(20000));
    write_text_atomically(home() / "shape" / "config.json", shape_text);
  }
  const fs::path& home() {
    if (!made_) fs::create_directories(folder_.path() / "shape");
    made_ = true;
    return folder_.path();
  }

  std::vector<std::string> train(const std::vector<std::string>& more) {
    std::vector<std::string> words{"train",
                                   "--data",
                                   (home() / "corpus.txt").string(),
                                   "--model",
                                   (home() / "shape").string(),
                                   "--from-scratch",
                                   "--seq-length",
                                   "32",
                                   "--micro-batch-size",
                                   "4",
                                   "--precision",
                                   "f32",
                                   "--lr",
                                   "3e-3",
                                   "--threads",
                                   "2"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Finished run(const std::vector<std::string>& words) { return run_command(home(), words); }
  std::string at(const std::string& name) { return (home() / name).string(); }

  static std::vector<Json> metrics(const fs::path& run) {
    std::vector<Json> lines;
    const std::string text = read_text(run / "metrics.jsonl");
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      lines.push_back(Json::parse(text.substr(begin, end - begin)));
      begin = end + 1;
    }
    return lines;
  }
  // step -> (loss, grad_norm): what must not depend on interruptions.
  static std::vector<std::string> numbers(const fs::path& run) {
    std::vector<std::string> out;
    for (const Json& line : metrics(run))
      out.push_back(line["step"].dump() + " " + line["loss"].dump() + " " +
                    line["grad_norm"].dump());
    return out;
  }

 private:
  static constexpr const char* shape_text =
      R"({"model_type": "llama", "vocab_size": 257, "hidden_size": 32, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 80,
          "max_position_embeddings": 128, "tie_word_embeddings": true})";
  TemporaryFolder folder_;
  bool made_ = false;
};

}  // namespace rankine::test

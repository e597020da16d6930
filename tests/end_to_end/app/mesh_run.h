#pragma once
#include "checkpoint/safetensors.h"
#include "ranks_run.h"

// Training runs over data, tensor and pipeline ranks.
namespace rankine::test {

// Layers for two stages on each of two pipeline ranks; heads for up to 4 tensor ranks.
class MeshRun : public RanksRun {
 protected:
  void SetUp() override {
    RanksRun::SetUp();
    if (IsSkipped()) return;
    fs::create_directories(home() / "deep");
    write_text_atomically(home() / "deep" / "config.json", deep_text);
  }

  // Three steps of the deep model with a step's 8 sequences, unless `more` says otherwise.
  std::vector<std::string> train_mesh(int ranks, const std::string& name,
                                      const std::vector<std::string>& more) {
    std::vector<std::string> words = train_ranks(
        ranks,
        {"--model", at("deep"), "--global-batch-size", "8", "--steps", "3", "--output", at(name)});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  struct Exported {
    std::vector<std::string> names;  // with their shapes
    std::vector<std::vector<float>> values;
  };
  Exported exported_tensors(const std::string& run_name) {
    exported(run_name);
    const SafetensorsFile file(home() / (run_name + "-exported") / "model.safetensors");
    Exported out;
    for (const SafetensorsEntry& entry : file.entries()) {
      std::string text = entry.name;
      for (const int64_t extent : entry.shape) text += " " + std::to_string(extent);
      out.names.push_back(text);
      std::vector<float>& values = out.values.emplace_back();
      values.resize(static_cast<size_t>(entry.elements()));
      file.read_floats(entry, 0, values);
    }
    return out;
  }

  // The same tensors, within rounding of the distance a few steps can move them.
  void expect_near_export(const std::string& run_name, const std::string& reference) {
    const Exported a = exported_tensors(run_name), b = exported_tensors(reference);
    EXPECT_EQ(a.names, b.names);
    ASSERT_EQ(a.values.size(), b.values.size());
    for (size_t t = 0; t < a.values.size(); ++t) {
      ASSERT_EQ(a.values[t].size(), b.values[t].size());
      double difference = 0, length = 0;
      for (size_t i = 0; i < a.values[t].size(); ++i) {
        const double x = a.values[t][i], y = b.values[t][i];
        difference += (x - y) * (x - y);
        length += y * y + 9e-6;
      }
      EXPECT_LE(std::sqrt(difference), 1e-3 * std::sqrt(length)) << a.names[t];
    }
  }

 private:
  static constexpr const char* deep_text =
      R"({"model_type": "llama", "vocab_size": 257, "hidden_size": 32, "num_hidden_layers": 4,
          "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 80,
          "max_position_embeddings": 128, "tie_word_embeddings": true})";
};

}  // namespace rankine::test

#include <algorithm>

#include "checkpoint/hf_config.h"
#include "checkpoint/hf_folder.h"
#include "checkpoint/hf_generation.h"
#include "checkpoint/hf_model.h"
#include "checkpoint/safetensors.h"
#include "support/errors.h"
#include "support/hf_folder.h"
#include "support/host_weights.h"
#include "support/temporary_folder.h"

// Folders as people have them: shards, links, what other programs leave in files and beside them.
namespace rankine::test {
namespace {

namespace fs = std::filesystem;

class FoundFolder : public ::testing::Test {
 protected:
  HfModel model = hf_model("llama");
  TemporaryFolder home;
  fs::path folder = home / "m";
  std::unique_ptr<Ops> ops = make_cpu_ops(1);
  std::vector<std::string> warnings;

  HostTensors load(const fs::path& from) {
    const ModelConfig config = read_hf_config(from / "config.json");
    HostTensors into = whole_weights(config);
    warnings = import_hf(from, config, into.list(), *ops);
    return into;
  }
  HostTensors load() { return load(folder); }
  std::string refusal() {
    const Error error = error_of([&] { load(); });
    EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
    return error.what();
  }
  void write(const HfFolderOptions& options = {}) {
    fs::remove_all(folder);
    write_hf_folder(folder, model, options);
  }
  std::vector<fs::path> shards() const {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".safetensors") out.push_back(entry.path());
    std::ranges::sort(out);
    return out;
  }
  // What import says when this was done to a folder of four shards.
  template <class Change>
  std::string refusal_after(Change&& change) {
    write({.shards = 4});
    change();
    return refusal();
  }
  void expect_in(const std::string& text, const std::string& part) const {
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks " << part;
  }
};

TEST_F(FoundFolder, ShardsAreAllThereOrNamed) {
  write();
  const HostTensors whole = load();
  write({.shards = 4});
  EXPECT_EQ(load(), whole);
  const std::string third = shards()[2].filename().string();
  expect_in(refusal_after([&] { fs::remove(folder / third); }),
            "lists the file '" + third + "', which is absent");
  expect_in(refusal_after([&] {
              fs::remove(folder / third);
              fs::create_symlink("../blobs/gone", folder / third);
            }),
            "is a link to '../blobs/gone', which is absent");
  expect_in(refusal_after([&] { fs::resize_file(folder / third, 0); }), third + "' is empty");
  expect_in(
      refusal_after([&] { fs::resize_file(folder / third, fs::file_size(folder / third) - 4); }),
      third + "'");
  expect_in(refusal_after([&] {
              write_text_atomically(folder / third, "version https://git-lfs.github.com/spec/v1\n");
            }),
            third + "' is not a safetensors file: it is a Git LFS pointer");
}

TEST_F(FoundFolder, AFileBesideTheIndexIsNotRead) {
  write();
  const HostTensors whole = load();
  write({.shards = 4});
  write_safetensors(folder / "model-00099-of-00099.safetensors",
                    {{"model.norm.weight", {{16}, std::vector<float>(16, 9)}}});
  write_text_atomically(folder / "consolidated.safetensors", "x");
  write_text_atomically(folder / "pytorch_model.bin", "x");
  EXPECT_EQ(load(), whole);
  EXPECT_TRUE(warnings.empty());
  write_safetensors(folder / "model.safetensors", model.weights);
  EXPECT_EQ(load(), whole);
  ASSERT_EQ(warnings.size(), 1U);
  expect_in(warnings[0], "the index is not read");
}

TEST_F(FoundFolder, LinksAsInTheHubsCache) {
  write();
  const HostTensors whole = load();
  const fs::path cache = home / "models--x--y", snapshot = cache / "snapshots" / "0123";
  fs::create_directories(snapshot);
  fs::create_directories(cache / "blobs");
  int number = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string blob = std::to_string(++number);
    fs::copy(entry.path(), cache / "blobs" / blob);
    fs::create_symlink(fs::path("../../blobs") / blob, snapshot / entry.path().filename());
  }
  EXPECT_EQ(load(snapshot), whole);
  expect_in(message_of([&] { fail_without_config(cache); }),
            "give the model in it: '" + snapshot.string() + "'");
  fs::remove(folder / "model.safetensors");
  fs::create_symlink("../../blobs/gone", folder / "model.safetensors");
  expect_in(refusal(), "model.safetensors' is a link to '../../blobs/gone', which is absent");
}

TEST_F(FoundFolder, BuffersAndPrefixesOfOtherPrograms) {
  write();
  const HostTensors whole = load();
  const HfModel official = model;
  model.weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = {{4}, {1, 1, 1, 1}};
  model.weights["model.rotary_emb.inv_freq"] = {{4}, {1, 1, 1, 1}};
  write();
  EXPECT_EQ(load(), whole) << "old rotary buffers";
  const auto renamed = [&](const std::string& from, const std::string& to) {
    model = official;
    model.weights.clear();
    for (const auto& [name, weight] : official.weights)
      model.weights[name.starts_with(from) ? to + name.substr(from.size()) : name] = weight;
    write();
  };
  renamed("model.", "");
  EXPECT_EQ(load(), whole) << "saved without the model around it";
  for (const std::string prefix : {"module.", "_orig_mod.", "base_model.model."}) {
    renamed("", prefix);
    expect_in(refusal(), prefix + "lm_head.weight");
  }
  model = official;
  model.weights["model.norm.bias"] = {{16}, std::vector<float>(16)};
  write();
  expect_in(refusal(), "unknown (1): model.norm.bias");
}

TEST_F(FoundFolder, AHeadIsTiedWhenTheConfigSaysSo) {
  model = hf_model("llama", {.tied = true});
  write();
  const HostTensors tied = load();
  const HfModel official = model;
  model.weights["lm_head.weight"] = model.weights["model.embed_tokens.weight"];
  write();
  EXPECT_EQ(load(), tied);
  EXPECT_TRUE(warnings.empty()) << "an equal head is no surprise";
  model.weights["lm_head.weight"].values[5] += 1;
  write();
  EXPECT_EQ(load(), tied);
  ASSERT_EQ(warnings.size(), 1U);
  expect_in(warnings[0], "lm_head.weight that differs");
  // Not tied, or silent of it, and no head.
  for (const Json& said : {Json(false), Json()}) {
    model = official;
    if (said.is_null())
      model.config.erase("tie_word_embeddings");
    else
      model.config["tie_word_embeddings"] = said;
    write();
    expect_in(refusal(), "missing (1): lm_head.weight");
  }
  model = hf_model("llama");
  write();
  const HostTensors untied = load();
  model.config.erase("tie_word_embeddings");
  write();
  EXPECT_EQ(load(), untied) << "a head that is there is used";
}

TEST_F(FoundFolder, ExportsOfTiedModelsHaveOneMatrix) {
  for (const std::string family : {"llama", "qwen3", "gpt2"})
    for (const bool tied : {true, false}) {
      model = hf_model(family, {.tied = tied});
      write();
      const HostTensors weights = load();
      const ModelConfig config = read_hf_config(folder / "config.json");
      const fs::path out = home / (family + (tied ? "-tied" : ""));
      export_hf(out, config, weights.list(), {.dtype = DType::f32}, *ops);
      EXPECT_EQ(Json::parse(read_text(out / "config.json"))["tie_word_embeddings"], tied);
      EXPECT_EQ(SafetensorsFile(out / "model.safetensors").find("lm_head.weight") == nullptr, tied);
      EXPECT_EQ(load(out), weights);
    }
}

struct Foreign {
  std::string name, says;
};

TEST_F(FoundFolder, OtherWeightsAreNamedWithWhatToDo) {
  const std::vector<Foreign> files{
      {"pytorch_model.bin", "save_pretrained"},
      {"pytorch_model-00001-of-00002.bin", "save_pretrained"},
      {"model-00001-of-00002.safetensors", "download the index too"},
      {"consolidated.safetensors", "convert them to transformers' names"},
      {"consolidated.00.pth", "convert them to transformers' names"},
      {"model-q4.gguf", "GGUF"},
      {"tf_model.h5", "TensorFlow"},
      {"weights.safetensors", "name them model.safetensors"},
      {"adapter_model.safetensors", "merge them into it"},
      {"training_args.bin", "has neither model.safetensors nor"}};
  for (const auto& [name, says] : files) {
    write();
    fs::remove(folder / "model.safetensors");
    write_text_atomically(folder / name, "x");
    const std::string message = refusal();
    expect_in(message, says);
    if (!says.starts_with("has") && !says.starts_with("merge")) expect_in(message, name);
  }
}

TEST_F(FoundFolder, AdaptersAreNoModel) {
  fs::create_directories(folder);
  write_text_atomically(folder / "adapter_model.safetensors", "x");
  write_text_atomically(folder / "adapter_config.json",
                        R"({"peft_type": "LORA", "base_model_name_or_path": "some/base"})");
  const Error error = error_of([&] { fail_without_config(folder); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  expect_in(error.what(), "holds adapters (LoRA) for 'some/base'");
  write({.files = {{"adapter_config.json", "{}"}}});
  ASSERT_EQ(hf_folder_notes(folder).size(), 1U);
  expect_in(hf_folder_notes(folder)[0], "as those of a merged model");
  write_text_atomically(folder / "adapter_model.bin", "x");
  ASSERT_EQ(hf_folder_notes(folder).size(), 1U);
  expect_in(hf_folder_notes(folder)[0], "they are not applied");
  write();
  EXPECT_TRUE(hf_folder_notes(folder).empty());
  model.config["auto_map"] = {{"AutoModelForCausalLM", "modeling_own.OwnForCausalLM"}};
  write();
  expect_in(hf_folder_notes(folder).at(0), "modeling_own.OwnForCausalLM");
}

TEST_F(FoundFolder, AFolderWithoutAConfigSaysWhatIsThere) {
  const auto message = [&] { return message_of([&] { fail_without_config(folder); }); };
  fs::create_directories(folder);
  expect_in(message(), "holds neither a config.json nor a complete checkpoint");
  write();
  fs::remove(folder / "config.json");
  expect_in(message(), "holds model.safetensors, but no config.json");
  fs::create_symlink("../../blobs/gone", folder / "config.json");
  expect_in(message(), "config.json' is a link to '../../blobs/gone', which is absent");
  write_text_atomically(home / "lfs.json", "version https://git-lfs.github.com/spec/v1\n");
  expect_in(message_of([&] { read_hf_config(home / "lfs.json"); }), "is a Git LFS pointer");
}

TEST_F(FoundFolder, IdsBeyondTheVocabularyAreLeftOutAndTold) {
  const auto config_with = [&](const Json& keys) {
    HfModel other = hf_model("llama");
    other.config.update(keys);
    ModelConfig config = parse_hf_config(other.config.dump(), "config.json");
    warnings = leave_out_foreign_ids(config, "config.json");
    return config;
  };
  EXPECT_EQ(
      config_with({{"bos_token_id", 63}, {"eos_token_id", {0, 63}}, {"pad_token_id", -1}}).bos, 63);
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(config_with({{"bos_token_id", 64}}).bos, -1);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0],
            "config.json: 'bos_token_id' is 64, and the model's vocabulary has 64: it is left out");
  EXPECT_EQ(config_with({{"pad_token_id", 64}}).pad, -1);
  const ModelConfig ends = config_with({{"eos_token_id", {99, 5, 70, 6}}});
  EXPECT_EQ(ends.eos, 5);
  EXPECT_EQ(ends.more_eos, (std::vector<int64_t>{6}));
  EXPECT_EQ(warnings.size(), 2U);
  EXPECT_EQ(config_with({{"eos_token_id", 64}}).eos, -1);
}

TEST_F(FoundFolder, GenerationConfigsAreReadTheSameWay) {
  const auto read = [&](const std::string& text) {
    write({.files = {{"generation_config.json", text}}});
    return read_hf_generation(folder, 64);
  };
  EXPECT_EQ(read(R"({"eos_token_id": 5, "do_sample": true})").eos, (std::vector<int64_t>{5}));
  const HfGeneration some =
      read(R"({"eos_token_id": [5, 64, 7], "bos_token_id": 900, "pad_token_id": null})");
  EXPECT_EQ(some.eos, (std::vector<int64_t>{5, 7}));
  ASSERT_EQ(some.notes.size(), 2U);
  expect_in(some.notes[0], "generation_config.json': 'bos_token_id' is 900");
  expect_in(some.notes[1], "'eos_token_id' is 64");
  EXPECT_TRUE(read(R"({"eos_token_id": null})").eos.empty());
  EXPECT_TRUE(read(R"({"eos_token_id": -1})").notes.empty());
  for (const char* damaged : {"{", R"({"eos_token_id": "5"})", R"({"eos_token_id": [1.5]})", "[]"})
    EXPECT_EQ(error_of([&] { read(damaged); }).kind(), ErrorKind::data) << damaged;
  write();
  EXPECT_TRUE(read_hf_generation(folder, 64).eos.empty()) << "none is there";
}

TEST_F(FoundFolder, KeysAreTypedAndNullIsAbsent) {
  write();
  const HostTensors whole = load();
  const Json good = model.config;
  for (const char* key : {"rope_scaling", "rope_parameters", "sliding_window", "attention_bias",
                          "mlp_bias", "hidden_act", "initializer_range", "quantization_config"})
    model.config[key] = nullptr;
  model.config.update(
      {{"dtype", "bfloat16"}, {"use_cache", false}, {"pretraining_tp", 1}, {"_name_or_path", "x"}});
  model.config["torch_dtype"] = nullptr;
  write();
  EXPECT_EQ(load(), whole);
  const std::vector<std::pair<std::string, Json>> faults{{"hidden_size", "16"},
                                                         {"num_hidden_layers", 2.0},
                                                         {"rope_theta", "10000"},
                                                         {"vocab_size", nullptr},
                                                         {"tie_word_embeddings", 0},
                                                         {"is_causal", false},
                                                         {"use_bidirectional_attention", true}};
  for (const auto& [key, value] : faults) {
    model.config = good;
    model.config[key] = value;
    write();
    expect_in(refusal(), "'" + key + "'");
  }
}

}  // namespace
}  // namespace rankine::test

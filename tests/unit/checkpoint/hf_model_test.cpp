#include "checkpoint/hf_model.h"

#include "base/file.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/hf_names.h"
#include "checkpoint/json.h"
#include "checkpoint/safetensors.h"
#include "support/errors.h"
#include "support/host_weights.h"
#include "support/temporary_folder.h"
#include "support/tiny_models.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;
using test::HostTensors;
using test::message_of;
using test::TemporaryFolder;

ModelConfig tiny(std::string_view name) {
  for (const test::TinyModel& model : test::tiny_models())
    if (model.name == name) return model.config;
  return {};
}

class HfModelTest : public ::testing::Test {
 protected:
  void export_model(const ModelConfig& config, const HfExport& options = {.dtype = DType::f32}) {
    export_hf(model, config, weights.list(), options, *ops);
  }
  std::vector<std::string> import_model(const ModelConfig& config, const HostTensors& into) {
    return import_hf(model, config, into.list(), *ops);
  }
  std::string refusal(const ModelConfig& config) {
    HostTensors into = test::whole_weights(config);
    return message_of([&] { import_model(config, into); });
  }
  // model.safetensors with the given tensors, all zero.
  void write_zeros(const std::vector<SafetensorsTensor>& tensors) {
    make_folders(model);
    fs::remove(model / "model.safetensors");
    SafetensorsWriter writer(model / "model.safetensors", tensors);
    for (size_t i = 0; i < tensors.size(); ++i) {
      const std::vector<float> zeros(static_cast<size_t>(tensors[i].shape.elements()));
      writer.write_floats(i, 0, zeros);
    }
    writer.finish();
  }
  static std::vector<SafetensorsTensor> official(const ModelConfig& config) {
    std::vector<SafetensorsTensor> out;
    for (const HfTensor& t : hf_tensors(config)) out.push_back({t.name, DType::f32, t.shape});
    return out;
  }

  std::unique_ptr<Ops> ops = make_cpu_ops(1);
  TemporaryFolder folder;
  fs::path model = folder / "model";
  ModelConfig gpt2 = tiny("gpt2"), llama = tiny("llama");
  HostTensors weights = test::random_weights(gpt2, 1);
};

TEST(HfNames, Gpt2JoinsAndTransposes) {
  const std::vector<HfTensor> tensors = hf_tensors(tiny("gpt2"));
  EXPECT_EQ(tensors[0].name, "transformer.wte.weight");
  EXPECT_EQ(tensors[1].name, "transformer.wpe.weight");
  const HfTensor& joined = tensors[2];
  EXPECT_EQ(joined.name, "transformer.h.0.attn.c_attn.weight");
  EXPECT_TRUE(joined.transposed);
  EXPECT_EQ(joined.shape, (Shape{24, 72}));
  ASSERT_EQ(joined.parts.size(), 3u);
  EXPECT_EQ(joined.parts[1].name, "layers.0.attention.k.weight");
  EXPECT_EQ(joined.parts[2].first_row, 48);
  EXPECT_EQ(tensors[3].name, "transformer.h.0.attn.c_attn.bias");
  EXPECT_FALSE(tensors[3].transposed);
  EXPECT_EQ(tensors[3].shape, (Shape{72}));
}

TEST(HfNames, LlamaNamesAreOneToOne) {
  std::vector<std::string> names;
  for (const HfTensor& t : hf_tensors(tiny("qwen3_dropout"))) {
    EXPECT_EQ(t.parts.size(), 1u);
    EXPECT_FALSE(t.transposed);
    names.push_back(t.name);
  }
  for (const char* name : {"model.embed_tokens.weight", "model.layers.2.self_attn.q_norm.weight",
                           "model.layers.0.mlp.gate_proj.weight", "model.norm.weight"})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  EXPECT_EQ(std::find(names.begin(), names.end(), "lm_head.weight"), names.end()) << "tied";
}

TEST_F(HfModelTest, Gpt2LayoutIsInputsByOutputs) {
  export_model(gpt2);
  const SafetensorsFile file(model / "model.safetensors");
  const SafetensorsEntry* entry = file.find("transformer.h.1.attn.c_attn.weight");
  ASSERT_NE(entry, nullptr);
  std::vector<float> stored(24 * 72);
  file.read_floats(*entry, 0, stored);
  size_t k = 0;
  while (weights.list()[k].name != "layers.1.attention.k.weight") ++k;
  for (size_t out = 0; out < 24; ++out)
    for (size_t in = 0; in < 24; ++in)
      ASSERT_EQ(stored[in * 72 + 24 + out], weights.values(k)[out * 24 + in]) << out << " " << in;
}

TEST_F(HfModelTest, ShardsAreListedAndReadBack) {
  export_model(gpt2, {.dtype = DType::f32, .max_shard_bytes = 20'000});
  const auto index = parse_json(read_text(model / "model.safetensors.index.json"), "index");
  EXPECT_EQ(index["metadata"]["total_size"], parameter_count(gpt2) * 4);
  EXPECT_TRUE(fs::exists(model / "model-00001-of-00006.safetensors") ||
              fs::exists(model / index["weight_map"]["transformer.wte.weight"].get<std::string>()));
  HostTensors into = test::whole_weights(gpt2);
  EXPECT_TRUE(import_model(gpt2, into).empty());
  EXPECT_EQ(into, weights);
  export_model(gpt2);
  EXPECT_TRUE(fs::exists(model / "model.safetensors"));
  EXPECT_FALSE(fs::exists(model / "model.safetensors.index.json")) << "stale after the new export";
}

TEST_F(HfModelTest, RefusesIndexesThatDoNotFitTheFiles) {
  export_model(gpt2, {.dtype = DType::f32, .max_shard_bytes = 20'000});
  const fs::path index = model / "model.safetensors.index.json";
  const auto good = parse_json(read_text(index), "index");
  const auto refusal_with = [&](const char* tensor, const nlohmann::json& file) {
    auto changed = good;
    if (file.is_null())
      changed["weight_map"].erase(tensor);
    else
      changed["weight_map"][tensor] = file;
    folder.write("model/model.safetensors.index.json", changed.dump());
    return refusal(gpt2);
  };
  const char* wte = "transformer.wte.weight";
  EXPECT_NE(refusal_with(wte, "../model.safetensors").find("not the name of a safetensors file"),
            std::string::npos);
  EXPECT_NE(refusal_with(wte, "/etc/x.safetensors").find("not the name"), std::string::npos);
  EXPECT_NE(refusal_with(wte, "absent.safetensors").find("'absent.safetensors', which is absent"),
            std::string::npos);
  EXPECT_NE(refusal_with(wte, good["weight_map"]["transformer.ln_f.bias"]).find("but it does not"),
            std::string::npos);
  EXPECT_NE(refusal_with(wte, nullptr).find("but it does"), std::string::npos);
}

TEST_F(HfModelTest, NamesAllTensorsThatDoNotFit) {
  std::vector<SafetensorsTensor> tensors = official(llama);
  tensors[0].shape = {83, 23};
  tensors[1].name = "model.layers.0.self_attn.q_proj.lora";
  tensors.pop_back();
  write_zeros(tensors);
  const std::string message = refusal(llama);
  EXPECT_NE(message.find("missing (2): model.layers.0.self_attn.q_proj.weight, "),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("unknown (1): model.layers.0.self_attn.q_proj.lora"), std::string::npos)
      << message;
  EXPECT_NE(
      message.find(
          "unfit (1): model.embed_tokens.weight has shape [83, 23], the config wants [83, 24]"),
      std::string::npos)
      << message;
  write_zeros({{"x", DType::f32, {1}}});
  EXPECT_NE(refusal(llama).find(", ..."), std::string::npos) << "only the first are listed";
}

TEST_F(HfModelTest, AcceptsGpt2WithoutPrefixAndOldBuffers) {
  std::vector<SafetensorsTensor> tensors = official(gpt2);
  for (SafetensorsTensor& t : tensors) t.name = t.name.substr(std::string("transformer.").size());
  tensors.push_back({"h.0.attn.bias", DType::f32, {1, 1, 32, 32}});
  tensors.push_back({"h.0.attn.masked_bias", DType::f32, {}});
  write_zeros(tensors);
  HostTensors into = test::random_weights(gpt2, 2);
  EXPECT_TRUE(import_model(gpt2, into).empty());
  EXPECT_EQ(into, test::whole_weights(gpt2)) << "all zero";
  tensors.push_back({"transformer.wte.weight", DType::f32, {83, 24}});
  write_zeros(tensors);
  EXPECT_NE(refusal(gpt2).find("'transformer.wte.weight' twice"), std::string::npos);
}

TEST_F(HfModelTest, TiedHeadInTheFileIsDroppedWithAWarningWhenItDiffers) {
  std::vector<SafetensorsTensor> tensors = official(gpt2);
  tensors.push_back({"lm_head.weight", DType::f32, {83, 24}});
  write_zeros(tensors);
  HostTensors into = test::whole_weights(gpt2);
  EXPECT_TRUE(import_model(gpt2, into).empty());
  fs::remove(model / "model.safetensors");
  SafetensorsWriter writer(model / "model.safetensors", tensors);
  for (size_t i = 0; i < tensors.size(); ++i)
    writer.write_floats(i, 0,
                        std::vector<float>(static_cast<size_t>(tensors[i].shape.elements()),
                                           static_cast<float>(i)));
  writer.finish();
  const std::vector<std::string> warnings = import_model(gpt2, into);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("lm_head.weight is dropped"), std::string::npos);
  tensors.back().shape = {24, 83};
  write_zeros(tensors);
  EXPECT_NE(refusal(gpt2).find("lm_head.weight has shape [24, 83]"), std::string::npos);
}

TEST_F(HfModelTest, RoundsToNearestEvenAndRefusesOverflow) {
  weights.values(0)[0] = 1.0f + 0x1p-8f;  // halfway between two bf16 values
  weights.values(0)[1] = 1.0f + 0x1.8p-7f;
  export_model(gpt2, {.dtype = DType::bf16});
  HostTensors into = test::whole_weights(gpt2);
  import_model(gpt2, into);
  EXPECT_EQ(into.values(0)[0], 1.0f);
  EXPECT_EQ(into.values(0)[1], 1.0f + 0x1p-6f);
  weights.values(3)[5] = 70000;
  EXPECT_NE(message_of([&] {
              export_model(gpt2, {.dtype = DType::f16});
            }).find("has the value 70000, which f16 cannot hold"),
            std::string::npos);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1)
      << "the earlier export alone";
}

TEST_F(HfModelTest, ReplacesOnlyItsOwnExports) {
  export_model(gpt2, {.dtype = DType::f32, .extra_files = {{"tokenizer.json", "{}"}}});
  EXPECT_EQ(read_text(model / "tokenizer.json"), "{}");
  export_model(gpt2);
  EXPECT_FALSE(fs::exists(model / "tokenizer.json"));
  folder.write("model/notes.txt", "mine");
  EXPECT_NE(message_of([&] { export_model(gpt2); }).find("holds 'notes.txt'"), std::string::npos);
  fs::remove_all(model);
  write_zeros(official(gpt2));
  EXPECT_NE(message_of([&] { export_model(gpt2); }).find("holds 'model.safetensors'"),
            std::string::npos);
  fs::remove_all(model);
  folder.write("model/config.json", "{}");
  EXPECT_NE(message_of([&] { export_model(gpt2); }).find("no earlier export"), std::string::npos);
  fs::remove(model / "config.json");
  EXPECT_NO_THROW(export_model(gpt2));
}

TEST_F(HfModelTest, SaysWhatIsMissingFromAFolder) {
  EXPECT_NE(refusal(gpt2).find("is not a folder"), std::string::npos);
  make_folders(model);
  EXPECT_NE(refusal(gpt2).find("has neither model.safetensors nor"), std::string::npos);
  folder.write("model/pytorch_model.bin", "x");
  EXPECT_NE(refusal(gpt2).find("only pytorch_model.bin"), std::string::npos);
}

}  // namespace
}  // namespace rankine

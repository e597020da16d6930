#include "base/file.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/hf_model.h"
#include "checkpoint/hf_names.h"
#include "checkpoint/hf_source.h"
#include "checkpoint/json.h"
#include "golden_models.h"
#include "ops/ops.h"
#include "support/errors.h"
#include "support/host_weights.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

bool is_mixture(const fs::path& folder) {
  const auto config = parse_json(read_text(folder / "config.json"), "config.json");
  const auto type = config["model_type"].get<std::string>();
  return type == "mixtral" || type.find("moe") != std::string::npos;
}

class GoldenModel : public ::testing::TestWithParam<fs::path> {
 protected:
  void SetUp() override {
    if (is_mixture(GetParam())) {
      const std::string message =
          test::message_of([&] { read_hf_config(GetParam() / "config.json"); });
      EXPECT_NE(message.find("mixture of experts"), std::string::npos) << message;
      GTEST_SKIP() << message;
    }
  }
  test::HostTensors import_model(const fs::path& folder, const ModelConfig& config) {
    test::HostTensors weights = test::random_weights(config, 5);
    warnings = import_hf(folder, config, weights.list(), *ops);
    return weights;
  }

  std::unique_ptr<Ops> ops = make_cpu_ops(1);
  std::vector<std::string> warnings;
};

TEST_P(GoldenModel, BothGenerationsOfConfigsAreOneModel) {
  if (!fs::exists(GetParam() / "config.v5.json")) GTEST_SKIP() << "no config.v5.json here";
  EXPECT_EQ(read_hf_config(GetParam() / "config.json"),
            read_hf_config(GetParam() / "config.v5.json"));
}

TEST_P(GoldenModel, ConfigReadsBackFromItsText) {
  const ModelConfig config = read_hf_config(GetParam() / "config.json");
  EXPECT_EQ(parse_hf_config(hf_config_text(config, DType::f32), "config.json"), config);
}

// Every stored value arrives at its place: each official tensor is put together again by hand.
TEST_P(GoldenModel, WeightsArriveWhereTheyBelong) {
  const ModelConfig config = read_hf_config(GetParam() / "config.json");
  test::HostTensors weights = import_model(GetParam(), config);
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < weights.list().size(); ++i) index[weights.list()[i].name] = i;
  const HfSource source(GetParam());
  std::map<std::string, HfSource::Place> places;
  for (const auto& [name, place] : source.tensors())
    places.emplace(official_hf_name(config, name), place);
  for (const HfTensor& tensor : hf_tensors(config)) {
    const HfSource::Place& place = places.at(tensor.name);
    std::vector<float> stored(static_cast<size_t>(place.entry->elements()));
    place.file->read_floats(*place.entry, 0, stored);
    const auto inputs = static_cast<size_t>(tensor.shape.elements() / tensor.outputs());
    const auto outputs = static_cast<size_t>(tensor.outputs());
    for (const HfPart& part : tensor.parts) {
      const auto values = weights.values(index.at(part.name));
      const auto first = static_cast<size_t>(part.first_row);
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t row = first + i / inputs, column = i % inputs;
        const size_t at = tensor.transposed ? column * outputs + row : row * inputs + column;
        ASSERT_EQ(values[i], stored[at]) << part.name << " element " << i;
      }
    }
  }
  const auto note = parse_json(read_text(GetParam() / "golden.json"), "golden.json");
  const bool stale = GetParam().filename().string().find("stale") != std::string::npos;
  EXPECT_EQ(!warnings.empty(), stale) << note.value("note", "");
}

TEST_P(GoldenModel, ExportKeepsEveryValue) {
  const ModelConfig config = read_hf_config(GetParam() / "config.json");
  const test::HostTensors weights = import_model(GetParam(), config);
  const test::TemporaryFolder folder;
  export_hf(folder / "out", config, weights.list(), {.dtype = DType::f32}, *ops);
  EXPECT_EQ(read_hf_config(folder / "out/config.json"), config);
  EXPECT_EQ(import_model(folder / "out", config), weights);
  EXPECT_TRUE(warnings.empty());
}

std::string case_name(const ::testing::TestParamInfo<fs::path>& info) {
  std::string name = info.param.filename().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenModel);
INSTANTIATE_TEST_SUITE_P(Models, GoldenModel, ::testing::ValuesIn(test::golden_models()),
                         case_name);

TEST(Golden, ModelsAreThere) {
  if (!fs::exists(test::golden_folder()))
    GTEST_SKIP() << "no " << test::golden_folder() << "; set RANKINE_GOLDEN";
  EXPECT_GE(test::golden_models().size(), 10u);
}

}  // namespace
}  // namespace rankine

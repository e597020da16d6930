#include "support/mesh_cases.h"

// The whole table of layouts, mesh by mesh: each trains as one rank does.
namespace rankine::test {
namespace {

struct Group {
  std::string name;
  std::vector<MeshCase> cases;
};

void PrintTo(const Group& group, std::ostream* out) {
  *out << group.name << ", " << group.cases.size() << " cases";
}

class Meshes : public ::testing::TestWithParam<Group> {};

TEST_P(Meshes, TrainAsOneRank) {
  for (const MeshCase& c : GetParam().cases) expect_trains_as_one_rank(c);
}

// One group for each mesh of each model: every k-th case of it, with a k of its own
// for meshes with tensor ranks.
std::vector<Group> groups(DType compute, bool strict, size_t every, size_t every_of_tensor) {
  std::vector<Group> out;
  size_t first = 0;
  for (const char* model : {"gpt2", "llama", "qwen3_dropout"})
    for (const Layout& mesh : meshes_up_to(8)) {
      const size_t k = mesh.tensor > 1 ? every_of_tensor : every;
      const std::vector<MeshCase> cases =
          slice(cases_of_mesh(model, compute, strict, mesh), k, first++ % k);
      if (!cases.empty())
        out.push_back(
            {fmt::format("{}_d{}t{}p{}", model, mesh.data, mesh.tensor, mesh.pipeline), cases});
    }
  return out;
}

const auto name_of = [](const ::testing::TestParamInfo<Group>& info) { return info.param.name; };

// All of f32. Strict sums without tensor ranks all, too; with them, where all ranks compare with
// the same tensor ranks alone, every third. Of bf16, which takes the same ways, every fifth or
// ninth.
INSTANTIATE_TEST_SUITE_P(F32, Meshes, ::testing::ValuesIn(groups(DType::f32, false, 1, 1)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Strict, Meshes, ::testing::ValuesIn(groups(DType::f32, true, 1, 3)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Bf16, Meshes, ::testing::ValuesIn(groups(DType::bf16, false, 5, 5)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(StrictBf16, Meshes, ::testing::ValuesIn(groups(DType::bf16, true, 9, 9)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Further, Meshes,
                         ::testing::Values(Group{"UnevenStages", uneven_stages()},
                                           Group{"WindowsAndBuckets", windows_and_buckets()},
                                           Group{"OddMicroBatches", odd_micro_batches()},
                                           Group{"SharedHeads", shared_heads()},
                                           Group{"DroppedOut", dropped_out()}),
                         name_of);

}  // namespace
}  // namespace rankine::test

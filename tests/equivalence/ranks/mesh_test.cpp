#include "support/mesh_cases.h"

// Slices of the table of layouts: each trains as one rank does. tests/slow has the whole table.
namespace rankine::test {
namespace {

class MeshTraining : public ::testing::TestWithParam<MeshCase> {};

TEST_P(MeshTraining, IsThatOfOneRank) {
  expect_trains_as_one_rank(GetParam());
}

const auto name_of = [](const ::testing::TestParamInfo<MeshCase>& info) {
  return info.param.name();
};

INSTANTIATE_TEST_SUITE_P(F32, MeshTraining,
                         ::testing::ValuesIn(slice(all_cases(DType::f32, false), 11)), name_of);
INSTANTIATE_TEST_SUITE_P(Bf16, MeshTraining,
                         ::testing::ValuesIn(slice(all_cases(DType::bf16, false), 41, 3)), name_of);
INSTANTIATE_TEST_SUITE_P(Strict, MeshTraining,
                         ::testing::ValuesIn(slice(all_cases(DType::f32, true), 23, 2)), name_of);
INSTANTIATE_TEST_SUITE_P(Further, MeshTraining, ::testing::ValuesIn(slice(further_cases(), 9, 1)),
                         name_of);

INSTANTIATE_TEST_SUITE_P(DroppedOut, MeshTraining, ::testing::ValuesIn(slice(dropped_out(), 5, 3)),
                         name_of);

}  // namespace
}  // namespace rankine::test

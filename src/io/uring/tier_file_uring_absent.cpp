#include "io/tier_file_engine.h"

namespace rankine {

std::unique_ptr<TierEngine> make_uring_engine(int, bool) {
  return nullptr;
}

}  // namespace rankine

#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "data/token_file.h"
#include "data/token_formats.h"

// Any bytes as a token file of Rankine's, of llm.c's and as a Megatron index: either Error{data},
// or runs that lie within the file. The first two bytes are the size of the .bin file beside the
// index.
namespace {

template <class Read>
void check_runs(uint64_t bytes, Read&& read) {
  try {
    const rankine::TokenRuns runs = read();
    for (const rankine::TokenRun& run : runs.runs) {
      const bool within = run.count > 0 && run.offset <= bytes &&
                          run.count <= (bytes - run.offset) / static_cast<uint64_t>(runs.width);
      if (!within) std::abort();
    }
  } catch (const rankine::Error& error) {
    if (error.kind() != rankine::ErrorKind::data) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const uint64_t bin_bytes = data[0] | static_cast<uint64_t>(data[1]) << 8;
  const rankine::FileBytes file(data + 2, size - 2);
  rankine::looks_like_raw_u32(file);
  check_runs(file.size(), [&] { return rankine::read_token_file(file, "file").runs; });
  check_runs(file.size(), [&] { return rankine::read_llmc(file, "file"); });
  check_runs(file.size(),
             [&] { return rankine::read_raw(file, rankine::TokenWidth::u32, "file"); });
  check_runs(bin_bytes, [&] { return rankine::read_megatron_index(file, bin_bytes, "file"); });
  return 0;
}

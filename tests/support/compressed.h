#pragma once
#include <zlib.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace rankine::test {

// One gzip member.
inline std::string gzip(std::string_view text) {
  z_stream state{};
  if (deflateInit2(&state, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    std::abort();
  std::string out(deflateBound(&state, text.size()) + 32, '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  if (deflate(&state, Z_FINISH) != Z_STREAM_END) std::abort();
  out.resize(state.total_out);
  deflateEnd(&state);
  return out;
}

}  // namespace rankine::test

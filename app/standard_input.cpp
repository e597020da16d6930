#include "standard_input.h"

#include <array>
#include <cstdio>

#include "base/error.h"

namespace rankine {

std::string standard_input() {
  std::string text;
  std::array<char, 65536> buffer{};
  for (size_t bytes = 0; (bytes = std::fread(buffer.data(), 1, buffer.size(), stdin)) > 0;)
    text.append(buffer.data(), bytes);
  require(std::ferror(stdin) == 0, ErrorKind::environment, "cannot read standard input");
  return text;
}

}  // namespace rankine

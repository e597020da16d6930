# Flags every target gets. Never -march here: instruction sets are chosen at run time (src/ops/cpu).
add_library(rankine_flags INTERFACE)
target_compile_options(rankine_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror
  # g++ 12 reports std::string concatenation under -O3 (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
target_include_directories(rankine_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
if(RANKINE_SANITIZE)
  target_compile_options(rankine_flags INTERFACE -fsanitize=${RANKINE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(rankine_flags INTERFACE -fsanitize=${RANKINE_SANITIZE})
endif()

#include "base/error.h"
#include "ops/backend.h"

namespace rankine {

Backend make_backend(const BackendSetup& setup) {
  require(setup.device == "cpu", ErrorKind::usage,
          "--device {}: there is no such device; there is cpu", setup.device);
  return {make_cpu_ops(setup.threads, setup.instruction_set)};
}

}  // namespace rankine

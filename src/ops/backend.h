#pragma once
#include <memory>
#include <string>

#include "ops/ops.h"

namespace rankine {

// What computes, chosen by name: operations with their device, queue and host operations.
struct Backend {
  std::unique_ptr<Ops> ops;
  Ops& host() const { return ops->host(); }
  Device& device() const { return ops->device(); }
};

struct BackendSetup {
  std::string device = "cpu";
  int threads = 0;                   // of make_cpu_ops()
  std::string instruction_set = {};  // likewise
};

// Error{usage} for a name that is no device's, with those that there are.
Backend make_backend(const BackendSetup& setup);

}  // namespace rankine

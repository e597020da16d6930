#include "planner/traffic.h"

namespace rankine {

Traffic data_parallel_traffic(int64_t parameters, int64_t data_degree, const ZeroPlan& plan,
                              int64_t accumulation) {
  require(parameters >= 1 && data_degree >= 1 && accumulation >= 1, ErrorKind::usage,
          "{} parameters, {} data-parallel ranks, accumulation {}: each must be at least 1",
          parameters, data_degree, accumulation);
  const auto ranks = static_cast<double>(data_degree), micros = static_cast<double>(accumulation);
  const double pass = static_cast<double>(parameters) * (ranks - 1) / ranks;
  const double reduction = scatters_gradients(plan) ? pass : 2 * pass;
  Traffic traffic;
  traffic.gradients = reduction * (reduces_every_micro(plan) ? micros : 1);
  if (gathers_per_use(plan)) traffic.parameters = 2 * pass * micros;
  if (gathers_after_step(plan)) traffic.parameters = pass;
  return traffic;
}

}  // namespace rankine

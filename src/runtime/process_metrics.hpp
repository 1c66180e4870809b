// The kernel's figures for this process, under the names that Prometheus client libraries use:
// process_cpu_seconds_total, process_resident_memory_bytes, process_open_fds, process_max_fds and
// process_start_time_seconds.
#pragma once

#include <vector>

#include <prometheus/metric_family.h>

namespace fencepost {

// Reads /proc at each call. A figure that cannot be read is left out. Any thread may call.
std::vector<prometheus::MetricFamily> process_metrics();

}  // namespace fencepost

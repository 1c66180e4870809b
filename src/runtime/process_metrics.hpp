// What the kernel says about this process, under the names that every Prometheus client library gives them:
// process_cpu_seconds_total, process_resident_memory_bytes, process_open_fds, process_max_fds and
// process_start_time_seconds.
#pragma once

#include <vector>

#include <prometheus/metric_family.h>

namespace fencepost {

// Read from /proc at each call. A fact that cannot be read is left out. Any thread.
std::vector<prometheus::MetricFamily> process_metrics();

}  // namespace fencepost

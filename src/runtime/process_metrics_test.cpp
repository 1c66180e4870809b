#include "runtime/process_metrics.hpp"

#include <chrono>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "runtime/unique_fd.hpp"

namespace fencepost {
namespace {

double value(const std::string& name) {
  for (const auto& family : process_metrics()) {
    if (family.name != name) continue;
    const auto& metric = family.metric.front();
    return family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
  }
  return -1;
}

TEST(process_metrics, knows_when_the_process_started) {
  const auto now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_LE(value("process_start_time_seconds"), now + 1);
  EXPECT_GT(value("process_start_time_seconds"), now - 600) << "the test process started less than 10 minutes ago";
}

TEST(process_metrics, count_open_files) {
  const auto before = value("process_open_fds");
  const UniqueFd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(value("process_open_fds"), before + 1);
  EXPECT_GT(value("process_max_fds"), before);
}

TEST(process_metrics, count_processor_time) {
  const auto before = value("process_cpu_seconds_total");
  EXPECT_GE(before, 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (value("process_cpu_seconds_total") <= before && std::chrono::steady_clock::now() < deadline) {
  }
  EXPECT_GT(value("process_cpu_seconds_total"), before);
}

TEST(process_metrics, measure_memory_in_bytes) {
  EXPECT_GT(value("process_resident_memory_bytes"), 1e6);
  EXPECT_LT(value("process_resident_memory_bytes"), 1e11);
}

}  // namespace
}  // namespace fencepost

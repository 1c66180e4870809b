#include "runtime/process_metrics.hpp"

#include <filesystem>
#include <optional>
#include <sstream>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

#include "runtime/leftover_process.hpp"
#include "runtime/read_file.hpp"

namespace fencepost {
namespace {

using prometheus::MetricType;

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

std::optional<double> cpu_seconds() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return std::nullopt;
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// /proc/self/statm: total and resident size, in pages.
std::optional<double> resident_bytes() {
  std::istringstream sizes(read_file("/proc/self/statm"));
  double total = 0;
  double resident = 0;
  if (!(sizes >> total >> resident)) return std::nullopt;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

std::optional<double> open_fds() {
  std::error_code unreadable;
  double count = 0;
  for (auto it = std::filesystem::directory_iterator("/proc/self/fd", unreadable);
       !unreadable && it != std::filesystem::directory_iterator(); it.increment(unreadable)) {
    ++count;
  }
  if (unreadable) return std::nullopt;
  return count - 1;  // without the descriptor that reads the directory
}

std::optional<double> max_fds() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return static_cast<double>(limit.rlim_cur);
}

std::optional<double> start_time() {
  const auto process = process_info(::getpid());
  const auto boot = read_file("/proc/stat");
  const auto at = boot.find("\nbtime ");
  if (!process || at == std::string::npos) return std::nullopt;
  const auto ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return std::stod(boot.substr(at + 7)) + static_cast<double>(process->start_ticks) / ticks_per_second;
}

void add(std::vector<prometheus::MetricFamily>& families, MetricType type, const char* name, const char* help,
         std::optional<double> value) {
  if (!value) return;
  prometheus::ClientMetric metric;
  (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = *value;
  families.push_back({.name = name, .help = help, .type = type, .metric = {std::move(metric)}});
}

}  // namespace

std::vector<prometheus::MetricFamily> process_metrics() {
  static const auto started = start_time();
  std::vector<prometheus::MetricFamily> families;
  add(families, MetricType::Counter, "process_cpu_seconds_total", "Processor time used", cpu_seconds());
  add(families, MetricType::Gauge, "process_resident_memory_bytes", "Memory in use", resident_bytes());
  add(families, MetricType::Gauge, "process_open_fds", "Open file descriptors", open_fds());
  add(families, MetricType::Gauge, "process_max_fds", "Limit on open file descriptors", max_fds());
  add(families, MetricType::Gauge, "process_start_time_seconds", "When the process started, in Unix time", started);
  return families;
}

}  // namespace fencepost

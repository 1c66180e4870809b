#include "runtime/metrics.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>
#include <prometheus/text_serializer.h>

#include "runtime/process_metrics.hpp"

namespace fencepost {

namespace {
const prometheus::Histogram::BucketBoundaries kLatencyBuckets{0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                                              0.05,    0.1,    0.25,  1,      5,     30};
const prometheus::Histogram::BucketBoundaries kLifetimeBuckets{1,   2.5, 5,    10,   30,    60,   120,
                                                               300, 600, 1200, 3600, 21600, 86400};

std::string full_name(const std::string& name, bool suits_its_type) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  if (!suits_its_type || !std::ranges::all_of(name, plain) || name.starts_with("fencepost_")) {
    throw std::invalid_argument(fmt::format("bad metric name '{}': see runtime/metrics.hpp for the rules", name));
  }
  return "fencepost_" + name;
}

}  // namespace

Metrics::Counter& Metrics::counter(const std::string& name, const std::string& help, const Labels& labels) {
  return prometheus::BuildCounter()
      .Name(full_name(name, name.ends_with("_total")))
      .Help(help)
      .Register(registry_)
      .Add(labels);
}

Metrics::Gauge& Metrics::gauge(const std::string& name, const std::string& help, const Labels& labels) {
  return prometheus::BuildGauge()
      .Name(full_name(name, !name.ends_with("_total")))
      .Help(help)
      .Register(registry_)
      .Add(labels);
}

void Metrics::remove(const std::string& name, Gauge& gauge) {
  prometheus::BuildGauge().Name(full_name(name, true)).Register(registry_).Remove(&gauge);
}

Metrics::Histogram& Metrics::latency(const std::string& name, const std::string& help, const Labels& labels) {
  return histogram(name, help, labels, kLatencyBuckets);
}

Metrics::Histogram& Metrics::lifetime(const std::string& name, const std::string& help, const Labels& labels) {
  return histogram(name, help, labels, kLifetimeBuckets);
}

Metrics::Summary& Metrics::time_spent(const std::string& name, const std::string& help, const Labels& labels) {
  // Without quantiles, the window of time in which they are estimated has no meaning; one bucket is the least memory.
  return prometheus::BuildSummary()
      .Name(full_name(name, name.ends_with("_seconds")))
      .Help(help)
      .Register(registry_)
      .Add(labels, Summary::Quantiles{}, std::chrono::minutes(1), 1);
}

Metrics::Histogram& Metrics::histogram(const std::string& name, const std::string& help, const Labels& labels,
                                       const Histogram::BucketBoundaries& bounds) {
  return prometheus::BuildHistogram()
      .Name(full_name(name, name.ends_with("_seconds")))
      .Help(help)
      .Register(registry_)
      .Add(labels, bounds);
}

void Metrics::before_scrape(std::function<void()> refresh) {
  const std::lock_guard lock(mutex_);
  refreshers_.push_back(std::move(refresh));
}

std::string Metrics::scrape() {
  const std::lock_guard one_at_a_time(scraping_);
  std::vector<std::function<void()>> refreshers;
  {
    const std::lock_guard lock(mutex_);
    refreshers = refreshers_;
  }
  for (const auto& refresh : refreshers) refresh();
  auto families = registry_.Collect();
  std::ranges::move(process_metrics(), std::back_inserter(families));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace fencepost

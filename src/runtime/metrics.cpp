#include "runtime/metrics.hpp"

#include <prometheus/text_serializer.h>

namespace fencepost {

namespace {
const prometheus::Histogram::BucketBoundaries kLatencyBuckets{
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};
}  // namespace

Metrics::Counter& Metrics::counter(const std::string& name, const std::string& help, const Labels& labels) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry_).Add(labels);
}

Metrics::Gauge& Metrics::gauge(const std::string& name, const std::string& help, const Labels& labels) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry_).Add(labels);
}

Metrics::Histogram& Metrics::latency(const std::string& name, const std::string& help, const Labels& labels) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry_).Add(labels, kLatencyBuckets);
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
  return prometheus::TextSerializer().Serialize(registry_.Collect());
}

}  // namespace fencepost

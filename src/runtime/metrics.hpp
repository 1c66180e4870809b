// Metrics: one registry per process, injected by constructor. Look a metric up once and store the reference; counting
// is then one atomic operation. References are valid as long as the Metrics object.
//
// Pass names without `fencepost_`, which is added to each; snake_case, with the unit last. Counters end in
// `_total`, latencies in `_seconds`; a gauge ends in its unit (`_seconds`, `_bytes`, `_ratio`) unless it counts things.
// Metrics of one chain have the label `chain`, the chain's name in the configuration. Create metrics at the start where
// their labels are known: an alert cannot see a counter that appears with its first increment.
// docs/metrics.md lists them all, and a test compares that list with a running node.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/summary.h>

namespace fencepost {

class Metrics {
 public:
  using Labels = std::map<std::string, std::string>;
  using Counter = prometheus::Counter;
  using Gauge = prometheus::Gauge;
  using Histogram = prometheus::Histogram;
  using Summary = prometheus::Summary;

  // The same name and labels return the same metric. The first `help` of a name is used. Throws std::invalid_argument
  // for a name that breaks the rules above. Any thread may call.
  Counter& counter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge& gauge(const std::string& name, const std::string& help, const Labels& labels = {});
  // Seconds, from 250 µs to 30 s: 16 lines of the exposition for each set of labels.
  Histogram& latency(const std::string& name, const std::string& help, const Labels& labels = {});
  // Seconds, from one second to a day.
  Histogram& lifetime(const std::string& name, const std::string& help, const Labels& labels = {});
  // Seconds, only their sum and count, in two lines: for what has many sets of labels.
  Summary& time_spent(const std::string& name, const std::string& help, const Labels& labels = {});
  // Removes a gauge whose subject is gone; the reference is then invalid. Any thread may call.
  void remove(const std::string& name, Gauge& gauge);
  // Calls back before each scrape, for values that are cheaper to query than to maintain. The callback runs on the
  // scraping thread and is never removed: what it uses must live as long as this object.
  void before_scrape(std::function<void()> refresh);

  // Returns the text exposition format, with the metrics of runtime/process_metrics.hpp. Any thread may call.
  std::string scrape();

 private:
  Histogram& histogram(const std::string& name, const std::string& help, const Labels& labels,
                       const Histogram::BucketBoundaries& bounds);

  prometheus::Registry registry_;
  std::mutex scraping_;  // held while callbacks run, so that they never run concurrently
  std::mutex mutex_;     // guards only the list, so that a callback may add another
  std::vector<std::function<void()>> refreshers_;
};

}  // namespace fencepost

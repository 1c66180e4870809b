// Metrics: one registry per process, handed in by constructor. Look a metric up once and keep the reference;
// counting is then one atomic. References live as long as the Metrics object.
//
// Names are given without `fencepost_`, which is put in front of each; snake_case, with the unit last. Counters end in
// `_total`, latencies in `_seconds`; a gauge ends in its unit (`_seconds`, `_bytes`, `_ratio`) unless it counts things.
// What belongs to one chain has the label `chain`, the chain's name in the configuration. A metric that can be known
// at the start is made at the start: an alert cannot see a counter that appears with its first increment.
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

namespace fencepost {

class Metrics {
 public:
  using Labels = std::map<std::string, std::string>;
  using Counter = prometheus::Counter;
  using Gauge = prometheus::Gauge;
  using Histogram = prometheus::Histogram;

  // The same name and labels give the same metric again. `help` counts the first time. Throws std::invalid_argument
  // for a name that breaks the rules above.
  Counter& counter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge& gauge(const std::string& name, const std::string& help, const Labels& labels = {});
  // Seconds, from 100 µs to 30 s.
  Histogram& latency(const std::string& name, const std::string& help, const Labels& labels = {});
  // Refreshed just before each scrape, for values that are cheaper to ask for than to keep. The callback runs
  // on the scraping thread and must outlive the registry's users: add it only for process-wide facts.
  void before_scrape(std::function<void()> refresh);

  // The text exposition format, with the facts about this process (runtime/process_metrics.hpp). Any thread.
  std::string scrape();

 private:
  prometheus::Registry registry_;
  std::mutex scraping_;  // held while refreshers run, so that each runs alone
  std::mutex mutex_;     // guards the list only, so that a refresher may add one
  std::vector<std::function<void()>> refreshers_;
};

}  // namespace fencepost

// Gauge of the open transactions that no live node can lead or sign for, or that none leads. Every node counts them for
// the whole cluster.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pg/database.hpp"
#include "runtime/metrics.hpp"
#include "runtime/worker.hpp"

namespace fencepost::tx {

class UnledGauge {
 public:
  // `silence`: as in store/ability_store.hpp.
  UnledGauge(Executor home, pg::Database& database, std::vector<std::int64_t> chains, std::chrono::milliseconds silence,
             Metrics& metrics);

  // On home.
  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }

 private:
  using Series = std::pair<std::int64_t, std::string>;  // chain id and reason

  awaitable<Worker::Next> refresh();
  Metrics::Gauge& gauge(const Series& series);

  pg::Database& database_;
  std::chrono::milliseconds silence_;
  Metrics& metrics_;
  std::map<Series, std::int64_t> shown_;
  Worker worker_;
};

}  // namespace fencepost::tx

// Keeps the months of the log on a node: adds the coming ones, removes the expired ones, once an hour, and reports them
// as metrics (outbox/event_partitions.hpp).
#pragma once

#include <chrono>

#include "base/error.hpp"
#include "outbox/event_partitions.hpp"
#include "pg/database.hpp"
#include "runtime/metrics.hpp"
#include "runtime/worker.hpp"

namespace fencepost::outbox {

class EventLogKeeper {
 public:
  EventLogKeeper(Executor executor, pg::Database& database, std::chrono::milliseconds retention, Metrics& metrics);

  // Adds the months that are missing. Call it on the loop, before anything writes to the log. A failure counts only if
  // the current month is missing, because every step would be refused: it fails with `no_event_partition` if this role
  // may not add months, and throws what PostgreSQL answers otherwise.
  awaitable<Result<void>> prepare();

  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }

 private:
  awaitable<Worker::Next> tend();
  awaitable<EventPartitionReport> look();
  void show(const EventPartitionReport& report);

  pg::Database& database_;
  EventUpkeepOptions options_;
  Metrics::Gauge& ahead_;
  Metrics::Gauge& expired_;
  Worker worker_;
};

}  // namespace fencepost::outbox

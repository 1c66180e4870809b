// TransferEventPoolCoordinator: executes approved transfers, retries waiting ones and rejects expired ones. Any number
// of nodes run it on one database: each claims its work there.
//
// Runs when it is woken, when the next transfer becomes due, and at a slow interval in case a notification got lost. A
// set that PostgreSQL refuses is halved until the transfer at fault is alone; that transfer is deferred and logged, and
// rejected at its tenth integrity error (execution_failure.hpp). A transfer whose account another session has locked is
// deferred too, and delays no other transfer.
#pragma once

#include "pg/database.hpp"
#include "runtime/worker.hpp"
#include "transfer/transfer_service.hpp"

namespace fencepost::transfer {

class TransferEventPoolCoordinator {
 public:
  TransferEventPoolCoordinator(Executor home, pg::Database& database, const TransferOptions& options, Metrics& metrics);

  // Call both on the loop's thread.
  void start();
  awaitable<> stop();
  // Any thread. Looks for due transfers.
  void wake() { worker_.wake(); }
  // Any thread. As wake, on every node. Call it after the commit; calls in quick succession are combined.
  void wake_everywhere();

 private:
  awaitable<Worker::Next> process();
  awaitable<Worker::Next> expire();
  awaitable<Worker::Next> measure();
  awaitable<ProcessResult> process_set();
  awaitable<ProcessResult> process_by_halves();
  awaitable<> free_lanes();
  void come_back_in(std::chrono::milliseconds delay);
  void note(const ProcessResult& done);

  pg::Database& database_;
  TransferOptions options_;
  Patience patience_{std::chrono::milliseconds(250), std::chrono::milliseconds(50)};
  Metrics::Counter& completed_total_;
  Metrics::Counter& approved_total_;
  Metrics::Counter& denied_total_;
  Metrics::Counter& put_off_total_;
  Metrics::Counter& failed_total_;
  Metrics::Gauge& waiting_;
  Metrics::Gauge& approved_;
  Metrics::Gauge& due_;
  Metrics::Gauge& oldest_waiting_;
  Metrics::Gauge& oldest_due_;
  Metrics::Gauge& oldest_approved_;
  Metrics::Gauge& without_lanes_;
  Metrics::Gauge& notify_queue_;
  std::optional<std::chrono::steady_clock::time_point> busy_since_;  // or the last look at who holds the lanes
  bool hold_lanes_ = true;
  asio::steady_timer next_due_;
  Worker worker_;
  Worker expiry_;
  Worker gauges_;
  Worker hints_;
};

}  // namespace fencepost::transfer

// TransferEventPoolCoordinator: executes what is approved, tries again what waits, rejects what has expired. Any number
// of nodes run it on one database: the work is claimed there.
//
// Woken when something became due; otherwise it comes by itself when the next is, and on a slow beat in case a hint got
// lost. A set that PostgreSQL refuses is halved until the one at fault stands alone, which is put off and reported.
// What a stranger's lock keeps from being done is put off too, and keeps nobody else.
#pragma once

#include "pg/database.hpp"
#include "runtime/worker.hpp"
#include "transfer/transfer_service.hpp"

namespace fencepost::transfer {

class TransferEventPoolCoordinator {
 public:
  TransferEventPoolCoordinator(Executor home, pg::Database& database, const TransferOptions& options, Metrics& metrics);

  // On the loop's thread, both.
  void start();
  awaitable<> stop();
  // Any thread. Something may be due.
  void wake() { worker_.wake(); }
  // Any thread. The same, on every node: told after a commit, and many of these are one.
  void wake_everywhere();

 private:
  awaitable<Worker::Next> process();
  awaitable<Worker::Next> expire();
  awaitable<Worker::Next> measure();
  awaitable<ProcessResult> process_set();
  awaitable<ProcessResult> process_by_halves();
  void come_back_in(std::chrono::milliseconds delay);
  void note(const ProcessResult& done);

  pg::Database& database_;
  TransferOptions options_;
  Patience patience_{std::chrono::milliseconds(250), std::chrono::milliseconds(50)};
  Metrics::Counter& completed_total_;
  Metrics::Counter& approved_total_;
  Metrics::Counter& denied_total_;
  Metrics::Counter& put_off_total_;
  Metrics::Gauge& waiting_;
  Metrics::Gauge& approved_;
  Metrics::Gauge& due_;
  Metrics::Gauge& oldest_waiting_;
  Metrics::Gauge& oldest_due_;
  Metrics::Gauge& oldest_approved_;
  Metrics::Gauge& notify_queue_;
  asio::steady_timer next_due_;
  Worker worker_;
  Worker expiry_;
  Worker gauges_;
  Worker hints_;
};

}  // namespace fencepost::transfer

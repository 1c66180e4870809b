// Wakes the nodes that deliver events, for commits that set `fencepost.hints` to `off` and so send no notification:
// PostgreSQL commits transactions that notify one after the other, which costs busy writers a sixth of their
// throughput. A lost announcement costs at most the poll interval of the feed.
#pragma once

#include "pg/database.hpp"
#include "runtime/worker.hpp"

namespace fencepost::outbox {

class EventAnnouncer {
 public:
  EventAnnouncer(Executor home, pg::Database& database, Metrics& metrics);

  // Call both on the loop's thread.
  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }

  // Any thread. Call it after the commit. The first call announces at once; calls within 5 ms of it share the next
  // announcement.
  void announce() { worker_.wake(); }

 private:
  awaitable<Worker::Next> notify();

  pg::Database& database_;
  asio::steady_timer pause_;
  Worker worker_;
};

}  // namespace fencepost::outbox

// The requests that wait until another node leads a signer. One query looks for all of them.
#pragma once

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <mutex>

#include "pg/database.hpp"
#include "runtime/completion.hpp"
#include "runtime/metrics.hpp"
#include "runtime/worker.hpp"
#include "tx/store/lease_store.hpp"

namespace fencepost::tx {

class LeaseWatch {
 public:
  LeaseWatch(Executor home, pg::Database& database, LeaseTimes times, Metrics& metrics);

  // On home.
  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }

  // Returns true once the lease has expired, was released, or is held under another token than `seen` says; false at
  // the deadline, also when `seen` is no lease that a node holds. May return true too often. Any loop.
  awaitable<bool> moved(LeaseView seen, Deadline deadline);
  // Some node released a lease: looks now. Any thread.
  void look_now();

 private:
  struct Waiter {
    LeaseView seen;
    Executor home;
    std::shared_ptr<Completion<bool>> done;
    Deadline since;
  };

  awaitable<Worker::Next> look();

  pg::Database& database_;
  LeaseTimes times_;
  std::mutex mutex_;
  std::list<Waiter> waiters_;  // guarded by mutex_
  std::atomic<bool> hurry_ = false;
  Worker worker_;
};

}  // namespace fencepost::tx

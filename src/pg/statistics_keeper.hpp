// Updates the planner's statistics while tables grow fast.
//
// PostgreSQL plans a prepared statement once and keeps the plan until the table's statistics change. A plan made while
// the table was empty may use the wrong index, and its cost then grows with every row. Autovacuum checks only once a
// minute, which can be tens of thousands of rows too late. So this worker analyzes a table whenever it has doubled (at
// 500 rows, 1,000, 2,000, …), which takes a fraction of a second.
#pragma once

#include "pg/database.hpp"
#include "runtime/worker.hpp"

namespace fencepost::pg {

class StatisticsKeeper {
 public:
  StatisticsKeeper(Executor executor, Database& database, Metrics& metrics);

  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }

 private:
  awaitable<Worker::Next> look();

  Database& database_;
  Worker worker_;
};

}  // namespace fencepost::pg

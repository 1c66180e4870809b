// Keeps the planner informed while tables grow fast.
//
// A prepared statement's plan is made once and kept until the table's statistics change. Made while the table was
// empty it may go by the wrong index, and then costs more with every row; autovacuum looks only once a minute, which
// can be tens of thousands of rows late. So whenever a table has doubled, it is analyzed: a fraction of a second, at
// 500 rows, 1,000, 2,000, … and nothing more.
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

// Updates the planner's statistics while the tables of a schema grow fast. For statements whose plans depend on them;
// it is better to write statements that do not (src/tx/store/query_plans_pgtest.cpp).
//
// PostgreSQL plans a prepared statement once and keeps the plan until the table's statistics change. A plan made while
// the table was empty may use the wrong index, and its cost then grows with every row. Autovacuum checks only once a
// minute, which can be tens of thousands of rows too late. So this worker analyzes a table whenever it has doubled (at
// 500 rows, 1,000, 2,000, …), which takes a fraction of a second.
#pragma once

#include <string>

#include "pg/database.hpp"
#include "runtime/worker.hpp"

namespace fencepost::pg {

class StatisticsKeeper {
 public:
  StatisticsKeeper(Executor executor, Database& database, std::string schema, Metrics& metrics);

  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }

 private:
  awaitable<Worker::Next> look();

  Database& database_;
  const std::string schema_;
  Worker worker_;
};

}  // namespace fencepost::pg

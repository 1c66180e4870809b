#include "pg/statistics_keeper.hpp"

#include "runtime/log.hpp"

namespace fencepost::pg {
namespace {

constexpr Statement kGrown{"pg_statistics_grown", R"(
  SELECT format('%I.%I', s.schemaname, s.relname) AS name
    FROM pg_stat_user_tables AS s
    JOIN pg_class AS c ON c.oid = s.relid
   WHERE s.schemaname = $1
     AND pg_has_role(c.relowner, 'USAGE')
     AND s.n_mod_since_analyze >= greatest(500, c.reltuples))"};

}  // namespace

StatisticsKeeper::StatisticsKeeper(Executor executor, Database& database, std::string schema, Metrics& metrics)
    : database_(database),
      schema_(std::move(schema)),
      worker_(
          executor,
          {.name = "pg_statistics", .interval = std::chrono::seconds(1), .stop_grace = std::chrono::milliseconds(0)},
          [this] { return look(); }, metrics) {}

awaitable<Worker::Next> StatisticsKeeper::look() {
  const auto grown = co_await database_.pool().query(kGrown, schema_);
  if (grown.empty()) co_return Worker::Next::kRest;
  const auto connection = co_await database_.pool().acquire();
  for (const auto row : grown) {
    const auto name = row.get<std::string>("name");
    // Another node may be analyzing the same table. A small sample is enough: plans only need to know whether there are
    // ten rows or a million.
    co_await connection->exec_script("SET default_statistics_target = 20; ANALYZE (SKIP_LOCKED) " + name);
    log::debug("analyzed a table that has grown", {{"table", name}});
  }
  co_return Worker::Next::kRest;
}

}  // namespace fencepost::pg

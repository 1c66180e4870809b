#include "outbox/feed/horizon.hpp"

#include "runtime/log.hpp"

namespace fencepost::outbox {
namespace {

// A transaction has a backend_xid once it writes. The oldest one holds the horizon.
constexpr pg::Statement kHorizonHolder{"outbox_horizon_holder", R"(
  SELECT who, (extract(epoch FROM clock_timestamp() - began) * 1000)::bigint AS age_ms
    FROM (SELECT backend_xid AS xid,
                 xact_start AS began,
                 format('process %s of %s@%s (%s, %s)', pid, usename, coalesce(datname, '-'),
                        coalesce(nullif(application_name, ''), 'unnamed'), coalesce(state, 'state hidden')) AS who
            FROM pg_stat_activity
           WHERE backend_xid IS NOT NULL
             AND pid <> pg_backend_pid()
           UNION ALL
          SELECT transaction,
                 prepared,
                 format('prepared transaction %L of %s@%s; end it with COMMIT PREPARED or ROLLBACK PREPARED', gid, owner,
                        database)
            FROM pg_prepared_xacts) AS writer
   ORDER BY age(xid) DESC
   LIMIT 1)"};

}  // namespace

awaitable<std::optional<HorizonHolder>> find_horizon_holder(pg::Pool& pool) {
  const auto rows = co_await pool.query(kHorizonHolder);
  if (rows.empty()) co_return std::nullopt;
  const auto row = rows.one();
  co_return HorizonHolder{.age = std::chrono::milliseconds(row.get<std::optional<std::int64_t>>("age_ms").value_or(0)),
                          .who = row.get<std::string>("who")};
}

HorizonWatch::HorizonWatch(Metrics& metrics, const SteadyClock& clock)
    : clock_(clock),
      age_(metrics.gauge("outbox_horizon_age_seconds",
                         "How long events have been waiting for the oldest running transaction")) {}

awaitable<> HorizonWatch::observe(bool held, pg::Pool& pool) {
  if (!held) {
    if (reported_) log::info("events are delivered again");
    since_.reset();
    reported_ = false;
    age_.Set(0);
    co_return;
  }
  const auto now = clock_.now();
  if (!since_) since_ = now;
  age_.Set(std::chrono::duration<double>(now - *since_).count());
  if (reported_ || now - *since_ < kAlarmAfter) co_return;
  reported_ = true;
  const auto holder = co_await find_horizon_holder(pool);
  log::warn("events wait for a transaction that does not end",
            {{"holder", holder ? holder->who : std::string("unknown")},
             {"transactionAgeMs", holder ? holder->age.count() : 0}});
}

}  // namespace fencepost::outbox

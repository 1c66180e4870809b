// The horizon of the log: the oldest transaction that still runs and may have taken a place in the log. Readers wait
// for it, because it may commit an event before those that they could already see (outbox::Settled). It may be a
// transaction of another database of the cluster: PostgreSQL's transaction ids are common to all of them.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "pg/pool.hpp"
#include "runtime/metrics.hpp"
#include "runtime/steady_clock.hpp"

namespace fencepost::outbox {

// The oldest writing transaction of the cluster.
struct HorizonHolder {
  std::chrono::milliseconds age{0};
  // For a person: "process 4711 of fencepost@ledger (psql, idle in transaction)", or "prepared transaction 'x' …".
  std::string who;
};

// nullopt: no writing transaction runs.
awaitable<std::optional<HorizonHolder>> find_horizon_holder(pg::Pool& pool);

// Reports a horizon that stands still: as a metric at all times, and in the log when it has been held for kAlarmAfter.
class HorizonWatch {
 public:
  static constexpr std::chrono::seconds kAlarmAfter{5};

  explicit HorizonWatch(Metrics& metrics, const SteadyClock& clock = SteadyClock::real());

  // Call after each look at the horizon: whether readers wait for a transaction. Names the holder in the log once per
  // incident.
  awaitable<> observe(bool held, pg::Pool& pool);

 private:
  const SteadyClock& clock_;
  Metrics::Gauge& age_;
  std::optional<SteadyClock::TimePoint> since_;
  bool reported_ = false;
};

}  // namespace fencepost::outbox

#include "outbox/event_log_keeper.hpp"

#include "pg/error.hpp"
#include "runtime/log.hpp"

namespace fencepost::outbox {

EventLogKeeper::EventLogKeeper(Executor executor, pg::Database& database, std::chrono::milliseconds retention,
                               Metrics& metrics)
    : database_(database),
      options_{.retention = retention},
      ahead_(metrics.gauge("event_partitions_ahead", "Months of the event log that exist after the current one")),
      expired_(metrics.gauge("event_partitions_expired", "Months of the event log that should have been removed")),
      worker_(
          executor,
          {.name = "event_log",
           .interval = std::chrono::hours(1),
           .backoff = {.initial = std::chrono::minutes(1), .cap = std::chrono::hours(1)},
           .stop_grace = std::chrono::milliseconds(0)},
          [this] { return tend(); }, metrics) {}

awaitable<Result<void>> EventLogKeeper::prepare() {
  auto report = co_await look();
  try {
    report = co_await add_event_months(database_.connector(), options_);
    show(report);
  } catch (const pg::QueryError& error) {
    // The months ahead can wait: the worker tries again, and the alert fires.
    if (!report.has_current_month) throw;
    log::warn("the coming months of the event log were not added", error.error());
  }
  if (!report.has_current_month) {
    co_return fail(conflict("no_event_partition",
                            "the table event has no partition for this month, and this role may not add one; run "
                            "'fencepost migrate' as the owner of the table"));
  }
  co_return Result<void>{};
}

awaitable<Worker::Next> EventLogKeeper::tend() {
  co_await look();  // the metrics must be true also when adding months fails
  const auto added = co_await add_event_months(database_.connector(), options_);
  show(added);
  if (added.months_ahead < kMonthsAhead) {
    log::warn("the event log needs more months: run 'fencepost migrate' as the owner of the table event",
              {{"monthsAhead", added.months_ahead}, {"expected", kMonthsAhead}});
  }
  const auto left = co_await remove_expired_events(database_.connector(), options_);
  show(left);
  co_return Worker::Next::kRest;
}

awaitable<EventPartitionReport> EventLogKeeper::look() {
  const auto partitions = co_await list_event_partitions(database_.pool(), options_.retention);
  auto report = report_on(partitions);
  show(report);
  co_return report;
}

void EventLogKeeper::show(const EventPartitionReport& report) {
  ahead_.Set(report.months_ahead);
  expired_.Set(static_cast<double>(report.expired));
}

}  // namespace fencepost::outbox

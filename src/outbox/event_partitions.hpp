// The months of the log. Each month of the table `event` is a partition, `event_YYYY_MM`, in UTC.
//
// Months are added before they begin, because a row without a partition is refused and its step with it. Months whose
// last day is older than `events.retention` are removed as a whole. Neither blocks a writer: a new month is attached to
// the log when it is complete, and an old one is detached with DETACH … CONCURRENTLY.
//
// Only the owner of the table, or a member of its role, can do this. For nodes with fewer rights `fencepost migrate`
// does it under the owner's role.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "pg/connector.hpp"
#include "pg/pool.hpp"

namespace fencepost::outbox {

// How many months exist after the current one. An outage of the upkeep has this long to be noticed.
inline constexpr int kMonthsAhead = 3;

struct EventPartition {
  enum class State {
    kAttached,
    kDetaching,  // a detach was interrupted: new statements no longer see its rows
    kDetached,   // a table of its own, not dropped yet
  };
  std::string name;
  State state = State::kAttached;
  TimePoint begins;
  int months_from_now = 0;  // 0: the current month
  bool expired = false;     // its end is older than the retention
};

struct EventPartitionReport {
  bool has_current_month = false;
  int months_ahead = 0;            // whole months after the current one, without a gap
  std::size_t expired = 0;         // partitions that should have been removed
  std::optional<TimePoint> since;  // the log is complete from here on; none: it has no partition
};

EventPartitionReport report_on(const std::vector<EventPartition>& partitions);

// All partitions, the oldest first. Expired is judged by the database's clock.
awaitable<std::vector<EventPartition>> list_event_partitions(pg::Pool& pool, std::chrono::milliseconds retention);

// The begin of the oldest month that the log still has; rows before it are gone. None: the log has no partition.
awaitable<std::optional<TimePoint>> event_log_since(pg::Pool& pool);

struct EventUpkeepOptions {
  std::chrono::milliseconds retention;
  // How long one statement may wait for transactions that use the log. Then it gives up until the next round.
  std::chrono::milliseconds patience{5000};
};

// Makes the partitions of this month and of the next kMonthsAhead that do not exist, on a session of its own. Several
// nodes may do so at once. Without the rights of the table's owner it changes nothing. Returns what is there then.
awaitable<EventPartitionReport> add_event_months(pg::Connector& connector, EventUpkeepOptions options);

// Removes expired partitions, and completes removals that were interrupted, on a session of its own. A step that
// another transaction delays for longer than `patience`, or that another node takes at the same time, is left for the
// next round. Without the rights of the table's owner it changes nothing. Returns what is there then.
awaitable<EventPartitionReport> remove_expired_events(pg::Connector& connector, EventUpkeepOptions options);

}  // namespace fencepost::outbox

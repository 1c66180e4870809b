// Reads the log: the table `event` (db/migrations/0009_event_log.sql), which holds the history of every subject and the
// events for consumers. The domains append to it in SQL, inside the statement that makes the step, so there is no event
// without its step and no step without its row.
//
// No rule may read the log: its old months are removed (outbox/event_partitions.hpp). What a decision depends on
// (idempotency, nonces, claims, audit) is in tables of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/value.hpp>

#include "base/clock.hpp"
#include "pg/pool.hpp"

namespace fencepost::outbox {

struct Event {
  std::int64_t seq = 0;
  std::string type;
  std::string subject;
  boost::json::value data;
  TimePoint at;
};

struct HistoryStep {
  std::int64_t seq = 0;
  TimePoint at;
  std::optional<std::string> from_state;  // none: this is the first step
  std::string to_state;
  std::optional<std::string> sub_state;
  std::string node;
  std::optional<std::int64_t> fencing_token;
  std::string why;
};

// The settled seq: no running transaction can still commit a row at or below it. Transactions take numbers in one
// order and commit in another, so a reader that moved on to every visible event would miss the slower ones for good.
// Comparing the events' transaction ids is not enough: an older transaction may take the later number.
//
// Each reader has its own, in memory. A new one starts at 0 and catches up once the transactions that are running now
// have ended. The settled seq may be above the newest event, because numbers of rolled-back transactions count too. A
// reader's position is the seq of the last event that it read, never the settled seq: after a crash PostgreSQL may
// hand out again a number that no committed row has. Pinned to one loop, one caller at a time.
class Settled {
 public:
  // Asks PostgreSQL and returns the new settled seq. Call it again while that is below the newest event.
  awaitable<std::int64_t> advance(pg::Pool& pool);
  std::int64_t seq() const { return seq_; }
  // Whether a running transaction is waited for.
  bool waiting() const { return !candidate_xid_.empty(); }

 private:
  std::int64_t seq_ = 0;
  std::int64_t candidate_ = 0;  // settled once every transaction before candidate_xid_ has ended
  std::string candidate_xid_;   // empty: none
};

// The events of one subject, oldest first: the first `limit` whose seq is greater than `after`.
awaitable<std::vector<Event>> events_of(pg::Pool& pool, std::string subject, std::size_t limit, std::int64_t after = 0);

// The steps of one subject, oldest first: the first `limit` whose seq is greater than `after`.
awaitable<std::vector<HistoryStep>> history_of(pg::Pool& pool, std::string subject, std::size_t limit,
                                               std::int64_t after = 0);

}  // namespace fencepost::outbox

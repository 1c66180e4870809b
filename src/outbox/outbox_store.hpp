// Reads what the domains have appended. They append in SQL, inside the statement whose step the event tells of, so
// that there is no event without its step and no step without its event (tables: db/migrations/0003_outbox.sql).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/value.hpp>

#include "base/clock.hpp"
#include "base/uuid.hpp"
#include "pg/pool.hpp"

namespace fencepost::outbox {

struct Event {
  std::int64_t seq = 0;
  std::string type;
  std::string subject;
  boost::json::value data;
  TimePoint created_at;
};

struct HistoryStep {
  std::int64_t seq = 0;
  TimePoint at;
  std::optional<std::string> from_state;  // none: it began here
  std::string to_state;
  std::optional<std::string> sub_state;
  std::string node;
  std::optional<std::int64_t> fencing_token;
  std::string why;
};

// How far the events are settled: no transaction that still runs can put one before. Numbers are taken in one order and
// committed in another, so a reader that went on to what it can see would miss the slower ones for good. (Looking at
// the transaction ids of the events instead does not help: an older transaction may take the later number.)
//
// One for each reader, in memory; a new one starts at nothing and has caught up as soon as the transactions that run
// now have ended. Lives on one loop, one caller at a time.
class Settled {
 public:
  // Asks PostgreSQL, and returns `seq` as it then is. Call it again while it stays behind the newest event.
  awaitable<std::int64_t> advance(pg::Pool& pool);
  std::int64_t seq() const { return seq_; }

 private:
  std::int64_t seq_ = 0;
  std::int64_t candidate_ = 0;  // settled once every transaction before candidate_xid_ has ended
  std::string candidate_xid_;   // empty: none
};

// The events after `after`, in order, up to what a Settled says.
awaitable<std::vector<Event>> events_between(pg::Pool& pool, std::int64_t after, std::int64_t settled,
                                             std::size_t limit);
// Those of one subject, oldest first: the first `limit` whose seq is greater than `after`.
awaitable<std::vector<Event>> events_of(pg::Pool& pool, std::string subject, std::size_t limit, std::int64_t after = 0);

// The steps of one subject, oldest first: the first `limit` whose seq is greater than `after`.
awaitable<std::vector<HistoryStep>> history_of(pg::Pool& pool, Uuid subject_id, std::size_t limit,
                                               std::int64_t after = 0);

}  // namespace fencepost::outbox

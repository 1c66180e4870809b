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
  TimePoint at;
  std::optional<std::string> from_state;  // none: it began here
  std::string to_state;
  std::optional<std::string> sub_state;
  std::string node;
  std::optional<std::int64_t> fencing_token;
  std::string why;
};

// The events after `seq`, in order, as far as no running transaction could still put one before them.
awaitable<std::vector<Event>> events_after(pg::Pool& pool, std::int64_t seq, std::size_t limit);
// Those of one subject, oldest first.
awaitable<std::vector<Event>> events_of(pg::Pool& pool, std::string subject, std::size_t limit);

// Every step of one subject, oldest first.
awaitable<std::vector<HistoryStep>> history_of(pg::Pool& pool, Uuid subject_id, std::size_t limit);

}  // namespace fencepost::outbox

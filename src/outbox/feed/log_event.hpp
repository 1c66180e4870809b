// One event of the log as consumers get it: its CloudEvents 1.0 envelope, made once for all consumers, and the values
// that filters compare. docs/events.md describes the envelope. Pure: no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "outbox/feed/event_domain.hpp"

namespace fencepost::outbox {

// Told instead of the events that were removed from the log before the consumer read them.
inline constexpr std::string_view kGapType = "EventsGap";

struct LogEvent {
  std::int64_t seq = 0;  // the position in the log; also the envelope's `id`
  std::string type;      // "TxConfirmed"
  std::string subject;   // "tx/<txId>"
  TimePoint at;
  std::string chain;                    // decimal; empty: the event is of no chain
  const EventDomain* domain = nullptr;  // nullptr: of no domain in the catalog, or a gap
  std::string id;                       // of the domain's kind, for example the signer; empty: none
  std::string envelope;                 // JSON on one line
};

// `data` is the JSON text of the log's row. Throws Exception `bad_event` when it is not a JSON object.
LogEvent make_log_event(const EventCatalog& catalog, std::int64_t seq, std::string_view type, std::string_view subject,
                        TimePoint at, std::string_view data);

// The event that reports a gap: the events from `from` to `to` were removed before they were read. Its seq is `to`.
LogEvent make_gap_event(std::int64_t from, std::int64_t to, TimePoint at);

using LogEvents = std::vector<LogEvent>;

}  // namespace fencepost::outbox

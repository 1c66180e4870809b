// Which events a consumer wants, and which events a caller may see. Pure: no I/O.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "http/auth.hpp"
#include "http/message.hpp"
#include "outbox/feed/event_domain.hpp"
#include "outbox/feed/log_event.hpp"

namespace fencepost::outbox {

// What a consumer asks for. An empty list means any value. An event must match every list.
struct EventFilter {
  std::vector<std::string> types;
  std::vector<std::string> subjects;
  std::vector<std::string> chains;                                   // decimal
  std::map<std::string, std::vector<std::string>, std::less<>> ids;  // kind → ids: "signer" → addresses

  // A gap matches every filter.
  bool matches(const LogEvent& event) const;

  bool operator==(const EventFilter&) const = default;
};

inline constexpr std::size_t kFilterMaxValues = 100;  // in each list

// Reads {"types": […], "subjects": […], "chains": […], "signers": […], "guilds": […]}, all optional: the last two are
// the catalog's kinds. Throws Exception kInvalid with `field`: `bad_request` for an unknown type, a bad form or too
// many values; the code of EventDomain::read_id for a bad id.
EventFilter read_event_filter(const EventCatalog& catalog, const JsonReader& in);
// The members that read_event_filter reads.
std::vector<std::string> event_filter_members(const EventCatalog& catalog);
// The same members; empty lists are left out.
boost::json::object to_json(const EventFilter& filter);

// Reads ?type=A,B&subject=…&chain=…&signer=…&guild=…. Throws Exception kInvalid: `invalid_parameter`, also for
// parameters that are neither these nor in `more`; the code of EventDomain::read_id for a bad id.
EventFilter read_event_query(const EventCatalog& catalog, const http::Request& request,
                             std::vector<std::string_view> more = {});

// What one caller may see, decided once for all events.
class EventVisibility {
 public:
  EventVisibility(const EventCatalog& catalog, const http::Principal& principal);

  // A gap is visible to every caller, an event of no known domain only to `admin`.
  bool allows(const LogEvent& event) const;
  // Errors, kForbidden: `insufficient_scope` when the caller may see no events, or none of a type that the filter
  // names; `signer_not_allowed`, `guild_not_allowed`, … when the filter names an id to which the caller is not
  // admitted.
  Result<void> check(const EventCatalog& catalog, const EventFilter& filter) const;

 private:
  struct Visible {
    const EventDomain* domain;
    bool restricted;
    std::vector<std::string> ids;  // if restricted
  };
  const Visible* find(const EventDomain* domain) const;

  std::vector<Visible> domains_;
  bool admin_;
};

}  // namespace fencepost::outbox

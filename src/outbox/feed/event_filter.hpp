// Which events a consumer wants, and which events a caller may see. Pure: no I/O.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "http/auth.hpp"
#include "outbox/feed/event_domain.hpp"
#include "outbox/feed/log_event.hpp"

namespace fencepost::outbox {

// What a consumer asks for. An empty list means any value; all lists must match.
struct EventFilter {
  std::vector<std::string> types;
  std::vector<std::string> subjects;
  std::vector<std::string> chains;                                  // decimal
  std::map<std::string, std::vector<std::string>, std::less<>> ids;  // kind → ids, for example "signer" → addresses

  // A gap passes every filter.
  bool matches(const LogEvent& event) const;

  bool operator==(const EventFilter&) const = default;
};

inline constexpr std::size_t kFilterMaxValues = 100;  // in each list

// Reads {"types", "subjects", "chains", "signers", "guilds"}: lists of strings; all optional. Kinds of the catalog are
// plural members. Throws Exception kInvalid `bad_request` with `field`: too many values, a type or a form that does not
// exist. Ids that are addresses are compared in lowercase.
EventFilter read_event_filter(const EventCatalog& catalog, const JsonReader& in);
// The members that read_event_filter reads, for JsonReader::reject_unknown.
std::vector<std::string> event_filter_members(const EventCatalog& catalog);
// The same members; empty lists are left out.
boost::json::object to_json(const EventFilter& filter);

// What one caller may see, decided once for all events.
class EventVisibility {
 public:
  EventVisibility(const EventCatalog& catalog, const http::Principal& principal);

  // Whether any event at all is visible.
  bool any() const { return !domains_.empty(); }
  // A gap is visible to everyone; an event of no known domain only to `admin`.
  bool allows(const LogEvent& event) const;
  // Error: kForbidden `insufficient_scope`, `signer_not_allowed`, `guild_not_allowed`, when the filter asks for events
  // that this caller may not see.
  Result<void> check(const EventCatalog& catalog, const EventFilter& filter) const;

 private:
  struct Visible {
    const EventDomain* domain;
    bool restricted;
    std::vector<std::string> ids;  // when restricted
  };
  std::vector<Visible> domains_;
  bool admin_;
};

}  // namespace fencepost::outbox

// Which flows of a contract a subscription is about: those that call one of the targets, one of the functions. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <boost/json/value.hpp>

#include "base/json_reader.hpp"
#include "notify/model/flow_facts.hpp"

namespace fencepost::notify {

struct NotifyFilters {
  std::vector<std::string> targets;    // addresses, lowercase; empty: any
  std::vector<std::string> functions;  // as the user gave them: "transfer(address,uint256)" or "0xa9059cbb"; empty: any

  bool unreadable = false;  // of a stored value; matches nothing

  bool empty() const { return targets.empty() && functions.empty() && !unreadable; }
  // Whether one call of the flow has one of the targets and one of the functions.
  bool match(const std::vector<FlowCall>& calls) const;

  friend bool operator==(const NotifyFilters&, const NotifyFilters&) = default;
};

inline constexpr std::size_t kFiltersMaxValues = 50;  // in each list

// Reads {"targets": […], "functions": […]}, both optional. Throws Exception kInvalid `bad_request`, `bad_address`,
// `bad_checksum` or `bad_function` with `field`.
NotifyFilters read_notify_filters(const JsonReader& in);
// As stored; none: no filters. A value that cannot be read matches no flow: one bad row must not stop other mails.
NotifyFilters stored_filters(const std::optional<boost::json::value>& stored);
// The same members; empty lists are left out.
boost::json::value to_json(const NotifyFilters& filters);

}  // namespace fencepost::notify

// `fencepost transfer balance|settings|kind`
#pragma once

#include <string>

#include <boost/json/object.hpp>

#include "base/error.hpp"

#include "cli/api_access.hpp"

namespace fencepost::cli {

struct GuildSettingsFlags {
  ApiFlags api = {};
  std::string guild = {};
  std::string daily_limit = {};  // an amount or "none"; empty: not changed, as are the others
  std::string cooldown = {};     // "300" (seconds), "5m"
  std::string expiry_hours = {};
  std::string max_retries = {};  // a number or "none"
  std::string reason = {};
  bool json = false;
};

// The request body, with only the members that were given; empty: nothing is to be changed. Errors: kInvalid
// `bad_cooldown`; `reason_required` if there is a change without a reason, `nothing_to_change` if there is only a
// reason.
Result<boost::json::object> settings_change(const GuildSettingsFlags& flags);

}  // namespace fencepost::cli

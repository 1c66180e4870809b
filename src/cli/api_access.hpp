// Which node a command talks to, and with which key.
#pragma once

#include <map>
#include <string>

#include "base/error.hpp"
#include "base/secret.hpp"

namespace fencepost::cli {

// The flags of the command line; empty: not given.
struct ApiFlags {
  std::string url;
  std::string api_key;
  std::string data_dir;  // of a running `up`, whose up.json holds URL and key
};

struct ApiAccess {
  std::string url;  // without a slash at the end
  Secret api_key;
  // The source of each, for messages: "--url", "FENCEPOST_API_KEY", "var/up.json".
  std::string url_from = {};
  std::string key_from = {};

  // "var/up.json", or "FENCEPOST_URL (key from FENCEPOST_API_KEY)".
  std::string from() const;
};

// URL and key each come from the first source that has it: its flag, --data-dir, the environment (FENCEPOST_URL,
// FENCEPOST_API_KEY). If none of these has either, both come from an `up` that runs in ./var. Errors: `api_unknown` if
// URL or key is missing; `not_up` if no `up` runs where --data-dir points.
Result<ApiAccess> find_api(const ApiFlags& flags, const std::map<std::string, std::string>& environment,
                           const std::string& usual_data_dir = "var");

}  // namespace fencepost::cli

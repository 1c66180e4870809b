// Which node a command talks to, and with which key.
#pragma once

#include <map>
#include <string>

#include "base/error.hpp"
#include "base/secret.hpp"

namespace fencepost::cli {

// What the command line says about it.
struct ApiFlags {
  std::string url;
  std::string api_key;
  std::string data_dir;  // of a running `up`, which announces both in its up.json
};

struct ApiAccess {
  std::string url;  // without a slash at the end
  Secret api_key;
  // What gave each, for messages: "--url", "FENCEPOST_API_KEY", "var/up.json".
  std::string url_from = {};
  std::string key_from = {};

  // "var/up.json", or "FENCEPOST_URL (key from FENCEPOST_API_KEY)".
  std::string from() const;
};

// Each of URL and key from the first that has it: its flag, --data-dir, the environment (FENCEPOST_URL,
// FENCEPOST_API_KEY), and if none of these has either, an `up` that runs in its usual place. Errors: `api_unknown` says
// how to give what is missing; `not_up` when nothing runs where --data-dir points.
Result<ApiAccess> find_api(const ApiFlags& flags, const std::map<std::string, std::string>& environment,
                           const std::string& usual_data_dir = "var");

}  // namespace fencepost::cli

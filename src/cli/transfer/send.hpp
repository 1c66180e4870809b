// `fencepost transfer send`
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <boost/json/object.hpp>

#include "base/error.hpp"

#include "cli/api_access.hpp"

namespace fencepost::cli {

struct TransferSendFlags {
  ApiFlags api;
  std::string guild;
  std::string from;
  std::string to;
  std::string amount;
  std::string reason;
  std::string metadata;  // a JSON object
  std::string mode;      // "sync" or "pool"; empty: the node's setting
  std::optional<std::int64_t> expires_hours;
  std::optional<std::int64_t> max_retries;  // -1: until the transfer expires
  std::string key;                          // empty: a new key is generated and printed
  bool wait = false;
  std::string timeout;  // of `wait`; empty: no limit
  bool json = false;
};

// The request body without its key, with only the members that were given. Error: kInvalid `bad_metadata`.
Result<boost::json::object> transfer_body(const TransferSendFlags& flags);

}  // namespace fencepost::cli

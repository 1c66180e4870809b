// `fencepost transfer send`
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <boost/json/object.hpp>

#include "cli/api_access.hpp"

namespace fencepost::cli {

struct TransferSendFlags {
  ApiFlags api;
  std::string guild;
  std::string from;
  std::string to;
  std::string amount;
  std::string reason;
  std::string mode;  // "sync" or "pool"; empty: as the node is set
  std::optional<std::int64_t> expires_hours;
  std::string key;  // empty: one is made, and shown
  bool wait = false;
  std::string timeout;  // of that; empty: no limit
  bool json = false;
};

// The body of the create: only what was given.
boost::json::object transfer_body(const TransferSendFlags& flags, const std::string& key);

}  // namespace fencepost::cli

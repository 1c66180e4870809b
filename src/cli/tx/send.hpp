// `fencepost tx send`
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <boost/json/value.hpp>

#include "base/error.hpp"

#include "cli/api_access.hpp"

namespace fencepost::cli {

struct TxSendFlags {
  ApiFlags api;
  std::string signer;
  std::string to;     // empty: creates a contract from the data
  std::string value;  // an amount that parse_amount accepts, as are the fees
  std::string data;
  std::string gas;
  std::string gas_price;
  std::string max_fee;
  std::string max_priority_fee;
  std::string request_id;  // empty: a new id is generated and printed
  std::optional<std::int64_t> chain_id;
  bool preflight = false;
  std::string wait;     // submitted, mined or confirmed; empty: do not wait
  std::string timeout;  // of `wait`; empty: no limit
  bool json = false;
};

// The request body, with only the members that were given. kInvalid `bad_amount` with the flag in the context.
Result<boost::json::value> create_body(const TxSendFlags& flags, const std::string& request_id);

}  // namespace fencepost::cli

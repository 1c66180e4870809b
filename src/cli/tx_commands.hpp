// `fencepost tx …`: what a person or a script asks of the transaction manager, by way of the API.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <boost/json/value.hpp>

#include "base/error.hpp"

#include "cli/api_client.hpp"

namespace fencepost {

struct TxSendFlags {
  ApiFlags api;
  std::string signer;
  std::string to;     // empty: creates a contract from the data
  std::string value;  // as parse_amount takes it; so are the fees
  std::string data;
  std::string gas;
  std::string gas_price;
  std::string max_fee;
  std::string max_priority_fee;
  std::string request_id;  // empty: one is made, and shown
  std::optional<std::int64_t> chain_id;
  bool preflight = false;
  std::string wait;     // submitted, mined or confirmed; empty: not at all
  std::string timeout;  // of that; empty: as long as it takes
  bool json = false;
};
int tx_send_command(const TxSendFlags& flags);

struct TxFlags {
  ApiFlags api;
  std::string tx_id;
  bool json = false;
};
int tx_get_command(const TxFlags& flags);
int tx_history_command(const TxFlags& flags);

struct TxListFlags {
  ApiFlags api;
  std::string signer;
  std::string state;
  std::optional<std::int64_t> chain_id;
  std::size_t limit = 50;
  bool json = false;
};
int tx_list_command(const TxListFlags& flags);

struct TxWatchFlags {
  TxFlags tx;
  std::string goal = "confirmed";
  std::string timeout;
};
int tx_watch_command(const TxWatchFlags& flags);

// An operator's act on one transaction.
struct TxActFlags {
  TxFlags tx;
  std::string verb;     // "rebroadcast", "record-hash" or "cancel"
  std::string tx_hash;  // of record-hash
  std::string reason;
};
int tx_act_command(const TxActFlags& flags);

// The body of the create. kInvalid `bad_amount` with the flag in the context.
Result<boost::json::value> create_body(const TxSendFlags& flags, const std::string& request_id);
// "/api/v1/tx?limit=50&signer=0x…"
std::string list_target(const TxListFlags& flags, std::size_t limit, const std::string& cursor);

}  // namespace fencepost

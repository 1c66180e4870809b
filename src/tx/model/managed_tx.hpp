// A managed transaction: a row of tx_view, and its JSON in the API.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <boost/json/value.hpp>

#include "base/clock.hpp"
#include "base/uuid.hpp"
#include "pg/result.hpp"
#include "tx/model/lease.hpp"
#include "tx/model/state.hpp"

namespace fencepost::tx {

struct ManagedTx {
  Uuid tx_id;
  SignerKey key;
  std::optional<std::string> request_id;
  std::int64_t creation_seq = 0;
  std::optional<std::int64_t> nonce;  // none: CREATED, or its nonce was released
  boost::json::value payload;
  std::int64_t gas_limit = 0;
  std::optional<std::string> tx_hash;
  TxState state = TxState::kCreated;
  std::optional<std::string> sub_state;
  std::optional<std::string> error_message;
  std::int32_t retry_count = 0;
  std::optional<TimePoint> first_submitted_at;
  std::optional<TimePoint> last_submit_at;
  std::optional<TimePoint> next_resubmit_at;
  std::optional<boost::json::value> receipt;
  std::optional<std::int64_t> receipt_block;
  std::optional<std::string> receipt_hash;
  std::optional<boost::json::value> confirmations;
  std::optional<TimePoint> confirmed_at;
  std::optional<std::int64_t> fencing_token;
  TimePoint created_at;
  TimePoint updated_at;
  // The transaction at a lower nonce that is STUCK or whose broadcasts fail; only where a query asks for it.
  std::optional<Uuid> blocked_by;

  bool mined() const { return receipt_block.has_value(); }
};

// Reads a row with the columns of FENCEPOST_TX_COLUMNS (tx/store/sql_parts.hpp).
ManagedTx read_managed_tx(const pg::Row& row);

// The JSON of the API: camelCase, 256-bit numbers as strings, times in UTC.
boost::json::object to_json(const ManagedTx& tx);

}  // namespace fencepost::tx

#include "tx/model/managed_tx.hpp"

#include "base/json.hpp"

namespace fencepost::tx {

ManagedTx read_managed_tx(const pg::Row& row) {
  ManagedTx tx;
  tx.tx_id = row.get<Uuid>("tx_id");
  tx.key = {row.get<std::int64_t>("chain_id"), row.get<std::string>("signer")};
  tx.request_id = row.get<std::optional<std::string>>("request_id");
  tx.creation_seq = row.get<std::int64_t>("creation_seq");
  tx.nonce = row.get<std::optional<std::int64_t>>("nonce");
  tx.payload = row.get<boost::json::value>("payload");
  tx.gas_limit = row.get<std::int64_t>("gas_limit");
  tx.tx_hash = row.get<std::optional<std::string>>("tx_hash");
  tx.state = kManagedTx.find(row.get<std::string_view>("state")).value();
  tx.sub_state = row.get<std::optional<std::string>>("sub_state");
  tx.error_message = row.get<std::optional<std::string>>("error_message");
  tx.retry_count = row.get<std::int32_t>("retry_count");
  tx.first_submitted_at = row.get<std::optional<TimePoint>>("first_submitted_at");
  tx.last_submit_at = row.get<std::optional<TimePoint>>("last_submit_at");
  tx.next_resubmit_at = row.get<std::optional<TimePoint>>("next_resubmit_at");
  tx.receipt = row.get<std::optional<boost::json::value>>("receipt");
  tx.receipt_block = row.get<std::optional<std::int64_t>>("receipt_block");
  tx.receipt_hash = row.get<std::optional<std::string>>("receipt_hash");
  tx.confirmations = row.get<std::optional<boost::json::value>>("confirmations");
  tx.confirmed_at = row.get<std::optional<TimePoint>>("confirmed_at");
  tx.fencing_token = row.get<std::optional<std::int64_t>>("fencing_token");
  tx.created_at = row.get<TimePoint>("created_at");
  tx.updated_at = row.get<TimePoint>("updated_at");
  return tx;
}

namespace {

boost::json::value time_json(const std::optional<TimePoint>& at) {
  return at ? boost::json::value(to_rfc3339(*at)) : boost::json::value(nullptr);
}

}  // namespace

boost::json::object to_json(const ManagedTx& tx) {
  boost::json::object out;
  out["txId"] = tx.tx_id.to_string();
  out["chainId"] = tx.key.chain_id;
  out["signer"] = tx.key.signer;
  out["requestId"] = optional_json(tx.request_id);
  out["nonce"] = optional_json(tx.nonce);
  out["state"] = kManagedTx.name(tx.state);
  out["subState"] = optional_json(tx.sub_state);
  out["txHash"] = optional_json(tx.tx_hash);
  out["payload"] = tx.payload;
  out["gas"] = std::to_string(tx.gas_limit);
  out["error"] = optional_json(tx.error_message);
  out["retryCount"] = tx.retry_count;
  out["receipt"] = optional_json(tx.receipt);
  out["confirmations"] = optional_json(tx.confirmations);
  out["blockedBy"] = tx.blocked_by ? boost::json::value(tx.blocked_by->to_string()) : boost::json::value(nullptr);
  out["createdAt"] = time_json(tx.created_at);
  out["updatedAt"] = time_json(tx.updated_at);
  out["firstSubmittedAt"] = time_json(tx.first_submitted_at);
  out["lastSubmitAt"] = time_json(tx.last_submit_at);
  out["nextResubmitAt"] = time_json(tx.next_resubmit_at);
  out["confirmedAt"] = time_json(tx.confirmed_at);
  return out;
}

}  // namespace fencepost::tx

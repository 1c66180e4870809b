#include "tx/store/fenced_rows.hpp"

#include "pg/params.hpp"
#include "tx/store/lease_store.hpp"

namespace fencepost::tx {

namespace sql {

// Rows in the order that every writer uses, and only while the lease is ours: somebody who lost it must not stand in
// the way of the new owner.
const pg::Statement kLockRows{"tx_step_lock", R"(
  SELECT t.tx_id
    FROM managed_tx AS t
    JOIN unnest($2::bigint[], $3::text[], $4::bigint[], $5::uuid[]) AS w(chain_id, signer, token, tx_id)
      ON w.tx_id = t.tx_id
    JOIN signer_lease AS l
      ON l.chain_id = w.chain_id AND l.signer = w.signer AND l.fencing_token = w.token
   WHERE l.owner_node = $1
   ORDER BY t.chain_id, t.signer, t.nonce, t.creation_seq
     FOR NO KEY UPDATE OF t)"};

}  // namespace sql

void FencedRows::add(const SignerLease& lease, const Uuid& id) {
  chains.push_back(lease.key.chain_id);
  signers.push_back(lease.key.signer);
  tokens.push_back(lease.fencing_token);
  ids.push_back(id);
}

pg::Batch fenced_batch(const std::string& node, const FencedRows& rows) {
  pg::Batch batch;
  batch.add(sql::kLockLeases, rows.chains, rows.signers)
      .add(sql::kLockRows, node, rows.chains, rows.signers, rows.tokens, rows.ids)
      .lock_timeout(kLockPatience);
  return batch;
}

StepOutcome read_outcome(const pg::Row& row) {
  const auto text = row.get<std::string_view>("outcome");
  return text == "done" ? StepOutcome::kDone : text == "fenced" ? StepOutcome::kFenced : StepOutcome::kMoved;
}

SignerLease read_lease(const pg::Row& row) {
  return {{row.get<std::int64_t>("chain_id"), row.get<std::string>("signer")}, row.get<std::int64_t>("token")};
}

TxState read_state(const pg::Row& row) {
  return kManagedTx.find(row.get<std::string_view>("state")).value();
}

std::optional<AnnouncedBlock> read_announced(const pg::Row& row) {
  if (row.is_null("told_block")) return std::nullopt;
  return AnnouncedBlock{row.get<std::int64_t>("told_block"), row.get<std::string>("told_hash")};
}

std::optional<std::chrono::milliseconds> read_seconds(const pg::Row& row, std::string_view column) {
  const auto seconds = row.get<std::optional<double>>(column);
  if (!seconds) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1000));
}

}  // namespace fencepost::tx

// Creates transactions and assigns nonces.
//
// Every write here first locks the lease, then the cursor. So the writes of one signer run one after the other, and
// each sees what the previous one committed. This lock ensures that a request id is one transaction and that a nonce
// belongs to one transaction; the unique indexes only prove it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/uuid.hpp"
#include "pg/batch.hpp"
#include "pg/pool.hpp"
#include "tx/model/lease.hpp"
#include "tx/model/managed_tx.hpp"
#include "tx/model/reconcile_reason.hpp"

namespace fencepost::tx {

// One create, as TransactionWriter passes it on.
struct NewTx {
  Uuid tx_id;
  SignerKey key;
  std::optional<std::string> request_id;
  std::string payload;       // canonical JSON
  std::string payload_hash;  // 32 bytes, raw
  std::int64_t gas_limit = 0;
};

// A lease that a batch uses, and how many of the signer's transactions may be in flight (0: no limit).
struct Allotment {
  SignerLease lease;
  std::int64_t max_in_flight = 1;
};

enum class CreateOutcome {
  kCreated,
  kExisting,        // the same request was stored before
  kConflict,        // the request id was used with another payload
  kFenced,          // this node no longer holds the lease
  kNeedsReconcile,  // no nonces are assigned until an operator has acted, for `reason`
};

struct CreateResult {
  CreateOutcome outcome = CreateOutcome::kFenced;
  std::optional<ManagedTx> tx = std::nullopt;  // for kCreated, kExisting and kConflict
  std::optional<ReconcileReason> reason = std::nullopt;
};

namespace sql {
extern const pg::Statement kCreateBatch;
extern const pg::Statement kPromote;
extern const pg::Statement kWaiting;
}  // namespace sql

// The statements that create_batch sends.
pg::Batch create_statements(const std::string& node, const std::vector<Allotment>& allotments,
                            const std::vector<NewTx>& items);
// One round trip and one commit; one result per item, in order. Requires: every item's signer is in `allotments`, once.
// Throws as Connection::run.
awaitable<std::vector<CreateResult>> create_batch(pg::Pool& pool, std::string node, std::vector<Allotment> allotments,
                                                  std::vector<NewTx> items);

struct Promotion {
  SignerKey key;
  Uuid tx_id;
  std::int64_t nonce = 0;
  std::string payload;
  std::int64_t gas_limit = 0;
};
// The statements that promote sends.
pg::Batch promote_statements(const std::string& node, const std::vector<Allotment>& allotments);
// Assigns nonces to waiting transactions, in creation order, as far as the windows have room. Returns the transactions
// that got a nonce.
awaitable<std::vector<Promotion>> promote(pg::Pool& pool, std::string node, std::vector<Allotment> allotments);

// The signers among `allotments` that have a transaction waiting for a nonce and probably room for it in their window.
awaitable<std::vector<SignerKey>> signers_waiting(pg::Pool& pool, std::vector<Allotment> allotments);

}  // namespace fencepost::tx

// The actions of operators. Each action needs a reason, is stored in operator_action and in the transaction's history
// in the same commit, and is fenced like every other write. Any loop.
#pragma once

#include <string>

#include "base/error.hpp"
#include "base/uuid.hpp"
#include "tx/model/managed_tx.hpp"
#include "tx/service/tx_service.hpp"
#include "tx/store/operator_store.hpp"

namespace fencepost::tx {

struct Operator {
  std::string actor;   // the API key's id and label
  std::string reason;  // 1 to 500 characters
};

// Errors of all methods: no_such_tx, no_such_signer (404); not_leader (409, with the leader's URL in `leader` if it is
// known); wrong_state (409) when the transaction's state forbids the action. Throws what the database throws.
class OperatorService {
 public:
  OperatorService(pg::Database& database, std::map<std::int64_t, ChainContext*> chains, evm::KeyRing& keys,
                  LeaseManager& leases, UuidGenerator& ids, Metrics& metrics);

  // Broadcasts the newest attempt again, now. Requires: ALLOCATED, TRACKING or STUCK, without a receipt.
  awaitable<Result<ManagedTx>> rebroadcast(Uuid tx_id, Operator who);
  // Records the hash of a transaction that was broadcast outside Fencepost and carries out the payload. The chain must
  // know it (`hash_unknown`), with the same sender, nonce and payload (`hash_mismatch`).
  awaitable<Result<ManagedTx>> record_hash(Uuid tx_id, std::string tx_hash, Operator who);
  // Signs and broadcasts a self-transfer of value 0 at the same nonce, with fees at least a tenth higher. How the
  // transaction ends depends on which of the two is mined.
  awaitable<Result<ManagedTx>> cancel(Uuid tx_id, Operator who);
  // Fills a gap: sends a self-transfer at a nonce below the cursor that no transaction has. Errors (409): `nonce_taken`
  // when a transaction has the nonce, also an external one; `nonce_unused` when the nonce is not below the cursor.
  awaitable<Result<ManagedTx>> fill_nonce(SignerKey key, std::int64_t nonce, Operator who);
  // Accepts the chain's count: moves the cursor up to it and assigns nonces again. Returns the next nonce.
  awaitable<Result<std::int64_t>> accept_reconcile(SignerKey key, Operator who);

 private:
  awaitable<Result<SignerLease>> lease_of(SignerKey key);
  awaitable<Result<std::pair<ManagedTx, SignerLease>>> open_tx(Uuid tx_id);
  awaitable<Result<ManagedTx>> find_again(Uuid tx_id);
  awaitable<Result<ManagedTx>> settle(StepOutcome outcome, Uuid tx_id, const OperatorAct& act);

  pg::Database& database_;
  std::map<std::int64_t, ChainContext*> chains_;
  evm::KeyRing& keys_;
  LeaseManager& leases_;
  UuidGenerator& ids_;
  Metrics& metrics_;
};

}  // namespace fencepost::tx

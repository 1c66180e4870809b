// What an operator may do by hand (DESIGN: STUCK). Each act has a reason, is written to operator_action and to the
// transaction's history in the same commit, and is fenced like everything else. Any loop.
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

// Errors of all: no_such_tx, no_such_signer (404), not_leader (409, with the leader's URL in `leader` where it is
// known), wrong_state (409): the state forbids it. Throws what the database throws.
class OperatorService {
 public:
  OperatorService(TxService& service, pg::Database& database, std::map<std::int64_t, ChainContext*> chains,
                  evm::KeyRing& keys, LeaseManager& leases, UuidGenerator& ids, Metrics& metrics);

  // Broadcasts the newest attempt again, now. ALLOCATED, TRACKING or STUCK without a receipt.
  awaitable<Result<ManagedTx>> rebroadcast(Uuid tx_id, Operator who);
  // A transaction with this hash carries out the payload: seen elsewhere, same sender and nonce. Checked against the
  // chain (`hash_mismatch`), which must know it (`hash_unknown`).
  awaitable<Result<ManagedTx>> record_hash(Uuid tx_id, std::string tx_hash, Operator who);
  // Signs and broadcasts a self-transfer of nothing at the same nonce, paying at least a tenth more. Which of the two
  // is mined decides how the transaction ends.
  awaitable<Result<ManagedTx>> cancel(Uuid tx_id, Operator who);
  // A self-transfer at a nonce below the cursor that nobody has: closes a gap. 409 `nonce_taken` when a
  // transaction has it (also one that keeps its place for a stranger's), `nonce_unused` when it is not below.
  awaitable<Result<ManagedTx>> fill_nonce(SignerKey key, std::int64_t nonce, Operator who);
  // The chain's count is right, the cursor follows it, and numbering goes on. Gives the next nonce.
  awaitable<Result<std::int64_t>> accept_reconcile(SignerKey key, Operator who);

 private:
  awaitable<Result<SignerLease>> lease_of(SignerKey key);
  awaitable<Result<std::pair<ManagedTx, SignerLease>>> open_tx(Uuid tx_id);
  awaitable<Result<ManagedTx>> find_again(Uuid tx_id);
  awaitable<Result<ManagedTx>> settle(StepOutcome outcome, Uuid tx_id, const OperatorAct& act);

  TxService& service_;
  pg::Database& database_;
  std::map<std::int64_t, ChainContext*> chains_;
  evm::KeyRing& keys_;
  LeaseManager& leases_;
  UuidGenerator& ids_;
  Metrics& metrics_;
};

}  // namespace fencepost::tx

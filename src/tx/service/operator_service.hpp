// The actions of operators. Each action needs a reason, is stored in operator_action and in the transaction's history
// in the same commit, and is fenced like every other write. Any loop.
#pragma once

#include <string>

#include "base/error.hpp"
#include "base/uuid.hpp"
#include "tx/model/managed_tx.hpp"
#include "tx/service/lease_watch.hpp"
#include "tx/service/tx_service.hpp"
#include "tx/store/operator_store.hpp"

namespace fencepost::tx {

struct Operator {
  std::string actor;   // the API key's id and label
  std::string reason;  // 1 to 500 characters
};

// Errors of all methods: no_such_tx, no_such_signer (404); not_leader (409, with the leader's URL in `leader` if it is
// known); chain_not_configured (409, on no live node); no_leader (503) when no node led the signer within
// tx.forward_timeout; wrong_state (409) when the transaction's state forbids the action. Throws what the database
// throws. What signs also fails with `no_key` (409, with `node` and `leader` if another node has the key): cancel,
// fill_nonce, and rebroadcast when nothing was signed yet.
class OperatorService {
 public:
  OperatorService(const TxOptions& options, pg::Database& database, std::map<std::int64_t, ChainContext*> chains,
                  evm::KeyRing& keys, LeaseManager& leases, LeaseWatch& watch, UuidGenerator& ids, Metrics& metrics);

  // Broadcasts the newest attempt that was signed here again, now. A STUCK transaction that every endpoint refused is
  // priced anew. Requires: ALLOCATED, TRACKING or STUCK, without a receipt. Error (409): `nothing_to_send` when no
  // attempt was signed here.
  awaitable<Result<ManagedTx>> rebroadcast(Uuid tx_id, Operator who);
  // Records the hash of a transaction that was broadcast outside Fencepost and carries out the payload. The chain must
  // know it (`hash_unknown`), with the same sender, nonce and payload (`hash_mismatch`).
  awaitable<Result<ManagedTx>> record_hash(Uuid tx_id, std::string tx_hash, Operator who);
  // Signs and broadcasts a self-transfer of value 0 at the same nonce, with fees at least a tenth higher and the gas
  // that the chain estimates for it (503 `rpc_unavailable` when no endpoint answers). Error: fee_above_ceiling (422).
  // How the transaction ends depends on which of the two is mined. A transaction that waits for its nonce (CREATED)
  // just ends. One that had ended and that the chain has undone is TRACKING again, with the self-transfer in place of
  // its payload; `wrong_state` when the chain has it, or its nonce is used.
  awaitable<Result<ManagedTx>> cancel(Uuid tx_id, Operator who);
  // Sends what had ended and was undone again: the stored bytes, so the same hash. Errors (409): `not_undone` when the
  // chain has it, or its nonce is used; `nothing_to_send` when no attempt was signed here.
  awaitable<Result<ManagedTx>> resend(Uuid tx_id, Operator who);
  // Ends a transaction that is STUCK because its nonce was taken by a transaction that cannot be found: FAILED_FINAL
  // `given_up`. Errors: `wrong_state` in any other state; `give_up_refused` (409) when an endpoint contradicts;
  // rpc_unavailable (503) unless every endpoint answers (service/give_up.hpp).
  awaitable<Result<ManagedTx>> give_up(Uuid tx_id, Operator who);
  // Fills a gap: sends a self-transfer at a nonce below the cursor that no transaction has. Errors (409): `nonce_taken`
  // when a transaction has the nonce, also an external one; `nonce_unused` when the nonce is not below the cursor.
  awaitable<Result<ManagedTx>> fill_nonce(SignerKey key, std::int64_t nonce, Operator who);
  // Accepts the chain's count: moves the cursor up to it and assigns nonces again. Returns the next nonce. Error (409):
  // `nothing_to_reconcile` unless the signer waits because the chain is ahead; names what to do instead.
  awaitable<Result<std::int64_t>> accept_reconcile(SignerKey key, Operator who);
  // Moves the cursor down, after the chain was reset (store/cursor_reset_store.hpp). Error (409): `reset_refused` with
  // `why` unless every endpoint proves that the nonces from `next_nonce` are free and unknown.
  struct CursorReset {
    std::int64_t next_nonce = 0;
    std::int64_t given_up = 0;
    std::int64_t released = 0;
  };
  awaitable<Result<CursorReset>> reset_cursor(SignerKey key, std::int64_t next_nonce, Operator who);

 private:
  enum class Needs { kNoKey, kKey };
  // Waits while no node leads the signer.
  awaitable<Result<SignerLease>> lease_of(SignerKey key, Needs needs = Needs::kNoKey);
  awaitable<Result<void>> check_served(SignerKey key, Needs needs);
  awaitable<Error> no_key(SignerKey key);
  awaitable<Result<std::pair<ManagedTx, SignerLease>>> open_tx(Uuid tx_id, Needs needs = Needs::kNoKey);
  awaitable<Result<ManagedTx>> find_again(Uuid tx_id);
  // The signed self-transfer at the transaction's nonce. Requires: it has one.
  awaitable<Result<Claim>> sign_cancel(ManagedTx tx, SignerLease lease);
  awaitable<Result<ManagedTx>> cancel_created(ManagedTx tx, SignerLease lease, Operator who);
  awaitable<Result<ManagedTx>> cancel_ended(ManagedTx tx, SignerLease lease, Operator who);
  awaitable<Error> why_nothing_to_reconcile(SignerLease lease);
  awaitable<Result<ManagedTx>> settle(StepOutcome outcome, Uuid tx_id, const OperatorAct& act);

  std::uint32_t gas_margin_percent_;
  std::chrono::milliseconds patience_;
  pg::Database& database_;
  std::map<std::int64_t, ChainContext*> chains_;
  evm::KeyRing& keys_;
  LeaseManager& leases_;
  LeaseWatch& watch_;
  UuidGenerator& ids_;
  Metrics& metrics_;
};

}  // namespace fencepost::tx

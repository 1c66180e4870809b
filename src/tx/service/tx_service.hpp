// The use cases behind the transaction routes. Any loop.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/uuid.hpp"
#include "evm/keys/key_ring.hpp"
#include "pg/database.hpp"
#include "runtime/metrics.hpp"
#include "tx/model/managed_tx.hpp"
#include "tx/model/payload.hpp"
#include "tx/options.hpp"
#include "tx/service/leader_client.hpp"
#include "tx/service/transaction_writer.hpp"
#include "tx/service/tx_change_signal.hpp"
#include "tx/store/tx_store.hpp"

namespace fencepost::tx {

struct ChainContext;

struct CreateTx {
  Uuid tx_id;  // assigned by the node that received the request from the client; forwarding does not change it
  SignerKey key;
  std::optional<std::string> request_id;
  Payload payload;
  bool preflight = false;     // ask the chain whether the transaction would revert, even when gas is given
  bool forwarded = false;     // received from another node: must not be forwarded again
  std::string authorization;  // the caller's Authorization header, sent along when the request is forwarded
};

struct CreatedTx {
  ManagedTx tx;
  bool existing = false;  // the request was accepted before
};

enum class WaitFor { kSubmitted, kMined, kConfirmed };

class TxService {
 public:
  TxService(TxOptions options, pg::Database& database, std::map<std::int64_t, ChainContext*> chains, evm::KeyRing& keys,
            LeaseManager& leases, TransactionWriter& writer, LeaderClient& leaders, TxChangeSignal& changes,
            Metrics& metrics);

  const TxOptions& options() const { return options_; }
  // The chain of a request: the given one, or the only configured one. Errors: kInvalid `chain_required`,
  // `unknown_chain`.
  Result<std::int64_t> resolve_chain(std::optional<std::int64_t> chain_id) const;
  // Error: kInvalid `unknown_signer` unless this node has the signer's key.
  Result<void> check_signer(const std::string& signer) const;

  // Errors: request_conflict (409, context txId), would_revert, insufficient_funds (422), signer_needs_reconcile,
  // not_leader (409, Retry-After), outcome_unknown, busy, rpc_unavailable (503). Throws what the database throws.
  awaitable<Result<CreatedTx>> create(CreateTx request);

  // nullopt when there is no such transaction.
  awaitable<std::optional<ManagedTx>> find(Uuid tx_id);
  awaitable<std::optional<ManagedTx>> find_by_request(SignerKey key, std::string request_id);
  // Returns the transaction as soon as it has reached `what` or ended, or after `timeout`. nullopt when there is no
  // such transaction.
  awaitable<std::optional<ManagedTx>> wait(Uuid tx_id, WaitFor what, std::chrono::milliseconds timeout);

 private:
  awaitable<Result<CreatedTx>> try_create(CreateTx& request, bool& lost_lease);
  awaitable<std::optional<Result<CreatedTx>>> answer_known(const CreateTx& request, const std::string& payload_hash);
  awaitable<Result<std::int64_t>> decide_gas(const CreateTx& request);
  awaitable<Result<CreatedTx>> forward(const CreateTx& request, LeaseView leader);
  Metrics::Counter& create_total(std::int64_t chain_id, std::string_view result);

  TxOptions options_;
  pg::Database& database_;
  std::map<std::int64_t, ChainContext*> chains_;
  evm::KeyRing& keys_;
  LeaseManager& leases_;
  TransactionWriter& writer_;
  LeaderClient& leaders_;
  TxChangeSignal& changes_;
  Metrics& metrics_;
};

// Whether the transaction has reached `what`, or has ended and so cannot change any more.
bool has_reached(const ManagedTx& tx, WaitFor what);

}  // namespace fencepost::tx

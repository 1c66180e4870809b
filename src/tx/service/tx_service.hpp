// What can be asked of the transaction manager: the use cases behind the routes. Any loop.
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
#include "evm/key_ring.hpp"
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
  Uuid tx_id;  // assigned by the node that got the request, and kept when it is forwarded
  SignerKey key;
  std::optional<std::string> request_id;
  Payload payload;
  bool preflight = false;     // ask the chain whether it would revert, also when gas is given
  bool forwarded = false;     // came from another node: not forwarded again
  std::string authorization;  // the caller's, to be passed on
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
  // The chain meant by a request: the given one, or the only one. Errors kInvalid: `chain_required`, `unknown_chain`.
  Result<std::int64_t> resolve_chain(std::optional<std::int64_t> chain_id) const;
  // kInvalid `unknown_signer` unless this node has the key.
  Result<void> check_signer(const std::string& signer) const;

  // Errors: request_conflict (409, context txId), would_revert, insufficient_funds (422), signer_needs_reconcile,
  // not_leader (409, Retry-After), outcome_unknown, busy, rpc_unavailable (503). Throws what the database throws.
  awaitable<Result<CreatedTx>> create(CreateTx request);

  awaitable<std::optional<ManagedTx>> find(Uuid tx_id);
  awaitable<std::optional<ManagedTx>> find_by_request(SignerKey key, std::string request_id);
  // As soon as it has come that far, or ended, or after `timeout`, whichever is first. Nothing: there is none.
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

// Whether it has come that far, or will come no further.
bool has_reached(const ManagedTx& tx, WaitFor what);

}  // namespace fencepost::tx

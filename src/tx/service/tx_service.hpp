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
#include "tx/service/lease_watch.hpp"
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
  bool preflight = false;           // ask the chain whether the transaction would revert, even when gas is given
  bool forwarded = false;           // received from another node: must not be forwarded again
  std::string authorization;        // the caller's Authorization header, sent along when the request is forwarded
  Deadline deadline = kNoDeadline;  // of the search for a leader; at most tx.forward_timeout
};

struct CreatedTx {
  ManagedTx tx;
  bool existing = false;  // the request was accepted before
};

enum class WaitFor { kSubmitted, kMined, kConfirmed };

class TxService {
 public:
  TxService(TxOptions options, pg::Database& database, std::map<std::int64_t, ChainContext*> chains, evm::KeyRing& keys,
            LeaseManager& leases, LeaseWatch& watch, TransactionWriter& writer, LeaderClient& leaders,
            TxChangeSignal& changes, Metrics& metrics);

  const TxOptions& options() const { return options_; }
  // The chain of a request: the given one, or the only configured one. Errors: kInvalid `chain_required`,
  // `unknown_chain`.
  Result<std::int64_t> resolve_chain(std::optional<std::int64_t> chain_id) const;
  // The same for a chain that this node need not have configured: its transactions are in the database. Error:
  // `chain_required`.
  Result<std::int64_t> name_chain(std::optional<std::int64_t> chain_id) const;

  // A request that was accepted before gets its transaction, also on a chain or for a signer that this node no longer
  // has. Errors: unknown_chain, unknown_signer (400, no node has or had the key), request_conflict (409, context txId),
  // would_revert, insufficient_funds, no_dynamic_fees, fee_above_ceiling (422, the caller's own fees do not fit the
  // chain or a ceiling), gas_above_limit, gas_above_block_limit, initcode_too_large, tx_too_large (422, the chain would
  // refuse it), signer_needs_reconcile, not_leader (409, Retry-After: another node leads, and forwarding is off),
  // no_leader (503: no node led the signer, or had its key, until the deadline; nothing happened), outcome_unknown,
  // busy, rpc_unavailable (503). Throws what the database throws.
  awaitable<Result<CreatedTx>> create(CreateTx request);

  // nullopt when there is no such transaction.
  awaitable<std::optional<ManagedTx>> find(Uuid tx_id);
  awaitable<std::optional<ManagedTx>> find_by_request(SignerKey key, std::string request_id);
  // Returns the transaction as soon as it has reached `what` or ended, or after `timeout`. nullopt when there is no
  // such transaction.
  awaitable<std::optional<ManagedTx>> wait(Uuid tx_id, WaitFor what, std::chrono::milliseconds timeout);

 private:
  // One create and the search for its leader. A try may end without a result.
  struct Course {
    CreateTx request;
    std::string payload_hash;
    Deadline deadline;
    int lost_leases = 0;
    bool maybe_stored = false;  // a node got the request and has not answered: it may store the request at any time
    bool keyless = false;       // at the last try, no live node had the key
  };
  using Tried = std::optional<Result<CreatedTx>>;  // nullopt: look for the leader again

  awaitable<Result<CreatedTx>> create_in_time(CreateTx request);
  static Result<CreatedTx> settled(const Course& course, Result<CreatedTx> result);
  awaitable<Tried> try_create(Course& course);
  awaitable<Tried> write(Course& course, std::int64_t gas);
  awaitable<Tried> answer_known(const Course& course);
  // Also refuses what the chain would refuse.
  awaitable<Result<std::int64_t>> decide_gas(const CreateTx& request);
  awaitable<Result<std::int64_t>> gas_of(const CreateTx& request);
  Result<void> check_fees(const CreateTx& request, std::int64_t gas) const;

  // tx_forwarding.cpp
  awaitable<Tried> try_elsewhere(Course& course);
  awaitable<Tried> pass_on(Course& course, LeaseView leader);
  awaitable<Tried> forward(Course& course, LeaseView leader);
  awaitable<Tried> stored_by_leader(LeaderClient::Answer answer);
  awaitable<> pause(const Course& course, const LeaseView& leader, std::chrono::milliseconds at_most);
  // The transaction with the id of the request, if that is this request. Errors: `tx_id_taken`.
  awaitable<Tried> answer_by_id(const Course& course);

  void count(std::int64_t chain_id, std::string_view result, int creates = 1);

  TxOptions options_;
  pg::Database& database_;
  std::map<std::int64_t, ChainContext*> chains_;
  evm::KeyRing& keys_;
  LeaseManager& leases_;
  LeaseWatch& watch_;
  TransactionWriter& writer_;
  LeaderClient& leaders_;
  TxChangeSignal& changes_;
  Metrics& metrics_;
};

// Whether the transaction has reached `what`, or has ended and so cannot change any more.
bool has_reached(const ManagedTx& tx, WaitFor what);

}  // namespace fencepost::tx

// Reads transactions, attempts and signers, for the API and for requests that wait.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hex.hpp"
#include "pg/batch.hpp"
#include "pg/pool.hpp"
#include "tx/model/attempt.hpp"
#include "tx/model/managed_tx.hpp"
#include "tx/model/reconcile_reason.hpp"

namespace fencepost::tx {

namespace sql {
// Constants, so that tests can check their plans.
extern const pg::Statement kFindTx;
extern const pg::Statement kFindRequests;
extern const pg::Statement kFindHashes;
extern const pg::Statement kFindAttempt;
extern const pg::Statement kFindNextNonce;
extern const pg::Statement kList;
extern const pg::Statement kListOfSigner;
extern const pg::Statement kListWaiting;
extern const pg::Statement kListOpen;
extern const pg::Statement kListConfirmed;
extern const pg::Statement kListFailed;
extern const pg::Statement kBlockers;
extern const pg::Statement kListAttempts;
extern const pg::Statement kListSigners;
extern const pg::Statement kBacklogs;
}  // namespace sql

// The transaction, with blocked_by set; nullopt when there is none.
awaitable<std::optional<ManagedTx>> find_tx(pg::Pool& pool, Uuid tx_id);

// The transaction that has the nonce; nullopt when there is none.
awaitable<std::optional<Uuid>> find_tx_at(pg::Pool& pool, SignerKey key, std::int64_t nonce);

// Whether transactions are signed, for requests that wait for the hash. Unknown ids are left out; in any order.
struct HashView {
  Uuid tx_id;
  TxState state = TxState::kCreated;
  std::optional<std::string> tx_hash;
  std::optional<std::string> error_message;
};
awaitable<std::vector<HashView>> find_hashes(pg::Pool& pool, std::vector<Uuid> tx_ids);

// An attempt by its hash, with the receipt of its transaction if that very attempt was mined.
struct AttemptRecord {
  std::string signer;
  std::optional<Bytes> raw;            // none: signed outside Fencepost
  std::optional<std::string> receipt;  // JSON, as the chain gave it
};
awaitable<std::optional<AttemptRecord>> find_attempt(pg::Pool& pool, std::int64_t chain_id, std::string tx_hash);

// The cursor of a signer; nullopt before its first use, and while its first nonce is not known.
struct NextNonce {
  std::int64_t next_nonce = 0;
  bool waiting = false;  // transactions without a nonce come first
};
awaitable<std::optional<NextNonce>> find_next_nonce(pg::Pool& pool, SignerKey key);

struct RequestLookup {
  SignerKey key;
  std::string request_id;
};
struct FoundRequest {
  ManagedTx tx;
  std::string payload_hash;  // raw
};
// One result per lookup, in order; nullopt where the request is not known.
awaitable<std::vector<std::optional<FoundRequest>>> find_requests(pg::Pool& pool, std::vector<RequestLookup> lookups);

struct TxFilter {
  std::optional<std::int64_t> chain_id;
  std::optional<std::string> signer;
  std::optional<std::string> state;
  std::optional<std::vector<std::string>> allowed_signers;  // signers that the caller may see; nullopt: all
  std::optional<Uuid> before;                               // the last transaction of the previous page
  std::size_t limit = 50;
};
// Newest first, with blocked_by set.
awaitable<std::vector<ManagedTx>> list_txs(pg::Pool& pool, TxFilter filter);

struct AttemptView {
  std::string tx_hash;
  std::int32_t attempt = 0;
  AttemptKind kind = AttemptKind::kOriginal;
  std::optional<boost::json::value> fees;
  std::optional<AttemptOutcome> outcome;
  std::optional<std::string> message;
  TimePoint created_at;
};
awaitable<std::vector<AttemptView>> list_attempts(pg::Pool& pool, Uuid tx_id);

// A signer as operators see it.
struct SignerView {
  SignerKey key;
  std::string leader;  // empty: no node leads it
  std::int64_t fencing_token = 0;
  std::optional<std::int64_t> next_nonce;
  std::optional<std::int64_t> chain_nonce;
  std::optional<ReconcileReason> reason;  // why it waits for an operator; nullopt: it does not
  std::optional<std::int64_t> gap_nonce;
  boost::json::value counts;  // open transactions by state
  std::optional<TimePoint> oldest_open;
};
awaitable<std::vector<SignerView>> list_signers(pg::Pool& pool, std::optional<std::vector<std::string>> allowed);

// Counts for the gauges: one entry per signer that this node leads and that has open transactions.
struct Backlog {
  SignerKey key;
  std::int64_t created = 0;
  std::int64_t allocated = 0;
  std::int64_t tracking = 0;
  std::int64_t stuck = 0;
  std::int64_t without_receipt = 0;
  std::int64_t above_ceiling = 0;
  double oldest_age_seconds = 0;
};
awaitable<std::vector<Backlog>> backlogs(pg::Pool& pool, std::string node, std::int64_t chain_id);

}  // namespace fencepost::tx

// Creating and numbering transactions: the money path's first half.
//
// Every statement here runs under the cursor's lock, taken under the lease's, so for one signer they run one after
// the other, each seeing what the one before has committed. That, and not a unique index, is what makes a request id
// one transaction and a nonce one owner; the indexes are there to prove it.
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

namespace fencepost::tx {

// One create as the writer gets it.
struct NewTx {
  Uuid tx_id;
  SignerKey key;
  std::optional<std::string> request_id;
  std::string payload;       // canonical JSON
  std::string payload_hash;  // 32 bytes, raw
  std::int64_t gas_limit = 0;
};

// A lease as a batch uses it, and how many of its transactions may be in flight (0: any number).
struct Allotment {
  SignerLease lease;
  std::int64_t max_in_flight = 1;
};

enum class CreateOutcome {
  kCreated,
  kExisting,        // the same request, already there
  kConflict,        // the request id is taken by another payload
  kFenced,          // the lease is not ours any more
  kNeedsReconcile,  // the chain's nonce is above the cursor: nothing is numbered until an operator has looked
};

struct CreateResult {
  CreateOutcome outcome = CreateOutcome::kFenced;
  std::optional<ManagedTx> tx;  // for kCreated, kExisting and kConflict
};

namespace sql {
extern const pg::Statement kCreateBatch;
extern const pg::Statement kPromote;
extern const pg::Statement kWaiting;
}  // namespace sql

// What create_batch sends.
pg::Batch create_statements(const std::string& node, const std::vector<Allotment>& allotments,
                            const std::vector<NewTx>& items);
// One round trip, one commit; one result for each, in order. Every item's signer is in `allotments`, once. Throws as
// Connection::run.
awaitable<std::vector<CreateResult>> create_batch(pg::Pool& pool, std::string node, std::vector<Allotment> allotments,
                                                  std::vector<NewTx> items);

struct Promotion {
  SignerKey key;
  Uuid tx_id;
  std::int64_t nonce = 0;
};
// What promote sends.
pg::Batch promote_statements(const std::string& node, const std::vector<Allotment>& allotments);
// Numbers those that wait, in creation order, as far as the windows are open. What got a nonce.
awaitable<std::vector<Promotion>> promote(pg::Pool& pool, std::string node, std::vector<Allotment> allotments);

// Of these, the ones with transactions that wait for a nonce and, as it looks, with room for one.
awaitable<std::vector<SignerKey>> signers_waiting(pg::Pool& pool, std::vector<Allotment> allotments);

}  // namespace fencepost::tx

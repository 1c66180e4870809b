// Writes creates, many per commit: creates that arrive while a batch is in flight form the next batch. The hash of the
// signer selects the lane, so that a signer's creates get their nonces in order of arrival.
#pragma once

#include <span>
#include <vector>

#include "pg/batched_write.hpp"
#include "pg/database.hpp"
#include "tx/service/chain_counters.hpp"
#include "tx/service/lease_manager.hpp"
#include "tx/store/create_store.hpp"
#include "tx/store/work_store.hpp"

namespace fencepost::tx {

struct PendingCreate {
  NewTx tx;
  std::int64_t max_in_flight = 1;
};

class TransactionWriter {
 public:
  using OnCreated = std::function<void(std::int64_t chain_id, std::vector<DueSubmit> numbered)>;

  // `on_created` is called on the lane's loop, after a commit that created transactions with a nonce, with these, in
  // the order of each signer's nonces.
  TransactionWriter(Runtime& runtime, pg::Database& database, LeaseManager& leases, std::size_t lanes,
                    std::size_t max_batch, OnCreated on_created, const ChainNames& chains, Metrics& metrics);

  void start() { creates_.start(); }
  awaitable<> stop(std::chrono::milliseconds grace) { return creates_.stop(grace); }

  // Any loop. kFenced when this node does not hold the lease (any more). Throws what the database throws: QueryError
  // for this item alone, CommitUnknown when PostgreSQL's answer was lost.
  awaitable<CreateResult> create(PendingCreate create);

 private:
  awaitable<std::vector<CreateResult>> write(std::span<const PendingCreate> items);
  void announce(std::span<const PendingCreate> items, const std::vector<CreateResult>& results);

  pg::Database& database_;
  LeaseManager& leases_;
  OnCreated on_created_;
  ChainCounters commits_total_;
  pg::BatchedWrite<PendingCreate, CreateResult> creates_;
};

}  // namespace fencepost::tx

// Creates, many per commit: what arrives while a batch is under way forms the next. One lane per hash of the signer,
// so that a signer's creates are numbered in the order they came.
#pragma once

#include <span>
#include <vector>

#include "pg/batched_write.hpp"
#include "pg/database.hpp"
#include "tx/service/lease_manager.hpp"
#include "tx/store/create_store.hpp"

namespace fencepost::tx {

struct PendingCreate {
  NewTx tx;
  std::int64_t max_in_flight = 1;
};

class TransactionWriter {
 public:
  // `on_created` is called after a commit that made transactions with a nonce; on the lane's loop.
  TransactionWriter(Runtime& runtime, pg::Database& database, LeaseManager& leases, std::size_t lanes,
                    std::size_t max_batch, std::function<void(std::int64_t chain_id)> on_created, Metrics& metrics);

  void start() { creates_.start(); }
  awaitable<> stop(std::chrono::milliseconds grace) { return creates_.stop(grace); }

  // Any loop. kFenced when the lease is not, or no longer, ours. Throws what the database throws: QueryError for this
  // item alone, CommitUnknown when PostgreSQL's answer was lost.
  awaitable<CreateResult> create(PendingCreate create);

 private:
  awaitable<std::vector<CreateResult>> write(std::span<const PendingCreate> items);
  void announce(const std::vector<CreateResult>& results);

  pg::Database& database_;
  LeaseManager& leases_;
  std::function<void(std::int64_t)> on_created_;
  Metrics::Counter& commits_total_;
  pg::BatchedWrite<PendingCreate, CreateResult> creates_;
};

}  // namespace fencepost::tx

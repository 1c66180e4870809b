// Creates, many per commit: what arrives while a batch is under way forms the next. One lane per hash of the signer,
// so that a signer's creates are numbered in the order they came.
#pragma once

#include "pg/database.hpp"
#include "runtime/batcher.hpp"
#include "tx/service/lease_manager.hpp"
#include "tx/store/create_store.hpp"

namespace fencepost::tx {

struct PendingCreate {
  NewTx tx;
  std::int64_t max_in_flight = 1;
};

class TransactionWriter {
 public:
  // `on_created` is told after a commit that made transactions with a nonce; on the lane's loop.
  TransactionWriter(Runtime& runtime, pg::Database& database, LeaseManager& leases, std::size_t lanes,
                    std::size_t max_batch, std::function<void(std::int64_t chain_id)> on_created, Metrics& metrics);

  void start() { batcher_.start(); }
  awaitable<> stop(std::chrono::milliseconds grace) { return batcher_.stop(runtime_, grace); }

  // Any loop. kFenced when the lease is not, or no longer, ours. Throws what the database throws: QueryError for this
  // item alone, CommitUnknown when nobody can know.
  awaitable<CreateResult> create(PendingCreate create);

 private:
  // What a batch came to for one item; a failure of its own must not be the others'.
  using Outcome = std::expected<CreateResult, std::exception_ptr>;

  awaitable<std::vector<Outcome>> write(std::vector<PendingCreate> items);
  awaitable<std::vector<Outcome>> write_once(std::span<const PendingCreate> items);
  void note(const std::vector<PendingCreate>& items, const std::vector<Outcome>& out);

  Runtime& runtime_;
  pg::Database& database_;
  LeaseManager& leases_;
  std::function<void(std::int64_t)> on_created_;
  Metrics::Counter& commits_total_;
  Batcher<PendingCreate, Outcome> batcher_;
};

}  // namespace fencepost::tx

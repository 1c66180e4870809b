// PendingTransferGateway: transfers of both modes and the pool of pending ones, as calls of the functions of the schema
// `economy`. A set is answered by a set, one answer for each item in the caller's order. Business outcomes are
// returned, never thrown.
//
// Throws as pg::Pool does: then nothing was done, except that after CommitUnknown the outcome is not known.
#pragma once

#include <string>
#include <vector>

#include "pg/pool.hpp"
#include "transfer/sync_set.hpp"
#include "transfer/transfer.hpp"

namespace fencepost::transfer {

enum class CreateOutcome {
  kCreated,
  kExisting,       // the key was used before for the same transfer
  kConflict,       // the key was used before for a different transfer
  kInvalid,        // amount or id not positive, or payer and payee are the same
  kAccountLocked,  // not done: another session has locked one of the accounts
};
struct CreateResult {
  CreateOutcome outcome = CreateOutcome::kInvalid;
  std::optional<Uuid> transfer_id;  // of a conflict: the transfer that used the key first
  std::optional<TransferStatus> status;
};

struct ProcessResult {
  std::int64_t claimed = 0;
  std::int64_t completed = 0;
  std::int64_t approved = 0;
  std::int64_t waiting = 0;
  std::int64_t denied = 0;
  std::int64_t put_off = 0;                           // deferred, because other sessions have locked their accounts
  bool more = false;                                  // call again at once
  bool busy = false;                                  // other sessions have locked due work; look again soon
  bool lane_busy = false;                             // another session works on a lane with due work
  std::optional<std::chrono::milliseconds> next_due;  // time until the next transfer becomes due
};

// A session that works on a lane.
struct LaneHolder {
  std::int64_t pid = 0;
  std::string role;
  std::string application;
  bool ended = false;  // it was terminated
  bool keeps = false;  // it has the lane for longer than a node would, and cannot be terminated
};

struct PoolState {
  std::int64_t waiting = 0;
  std::int64_t approved = 0;
  std::int64_t retries_due = 0;
  std::int64_t due = 0;                                      // waiting or approved transfers that are due now
  std::optional<std::chrono::milliseconds> oldest_waiting;   // since it was created
  std::optional<std::chrono::milliseconds> oldest_due;       // since it was due
  std::optional<std::chrono::milliseconds> oldest_approved;  // since it was approved
  std::optional<Uuid> oldest_approved_id;
  double notify_queue = 0;  // fill level of PostgreSQL's notification queue; at 1 every commit that notifies fails
};

class PendingTransferGateway {
 public:
  explicit PendingTransferGateway(pg::Pool& pool) : pool_(pool) {}

  // A set waits at most `patience` for locks, then runs without the items whose accounts are locked.
  awaitable<std::vector<CreateResult>> create(std::span<const NewTransfer> transfers,
                                              std::chrono::milliseconds patience);
  // Requires: the ids of the transfers were generated at random.
  awaitable<SyncResults> transfer_now(std::span<const NewTransfer> transfers, std::chrono::milliseconds patience);

  // Processes at most `limit` due transfers in one transaction. `process_only` processes only the given transfers and
  // does not wait for locks.
  awaitable<ProcessResult> process_due(std::size_t limit, std::chrono::milliseconds patience, bool hold_lanes);
  awaitable<ProcessResult> process_only(std::vector<Uuid> only, bool hold_lanes);
  // The transfers that process_due would take next; used to find the transfer that makes a set fail.
  awaitable<std::vector<Uuid>> list_due(std::size_t limit);
  awaitable<> defer(Uuid transfer_id, std::chrono::milliseconds delay);
  // After PostgreSQL refused to execute the transfer alone, with an integrity error: defers it, and at the tenth time
  // fails it for good. Returns whether it failed.
  awaitable<bool> execution_refused(Uuid transfer_id, std::chrono::milliseconds delay);
  // Terminates sessions of our role that have held a lane for `patience` while they wait for their client. Returns all
  // sessions that hold a lane.
  awaitable<std::vector<LaneHolder>> end_lane_holders(std::chrono::milliseconds patience);
  awaitable<std::int64_t> expire(std::size_t limit);

  // Finds a transfer of either mode; nothing if it does not exist.
  awaitable<std::optional<Transfer>> find(Uuid transfer_id);
  // Newest first; `before` is the seq of the last transfer of the previous page.
  awaitable<std::vector<Transfer>> list(std::int64_t guild_id, std::optional<TransferStatus> status,
                                        std::optional<std::int64_t> before, std::size_t limit);
  struct Cancelled {
    bool cancelled = false;
    std::optional<TransferStatus> status;  // after the call; none: the transfer does not exist
  };
  awaitable<Cancelled> cancel(Uuid transfer_id);
  struct Failed {
    bool failed = false;
    std::optional<TransferStatus> status;  // as in Cancelled
  };
  // Rejects an approved transfer by hand and gives its money back to the payer.
  awaitable<Failed> fail(Uuid transfer_id, std::string reason, std::string actor);

  awaitable<PoolState> pool_state();
  // Notifies the nodes that transfers may be due.
  awaitable<> wake_nodes();

 private:
  pg::Pool& pool_;
};

}  // namespace fencepost::transfer

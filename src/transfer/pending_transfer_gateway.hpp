// PendingTransferGateway: transfers of both modes and the pool of pending ones, as calls of the functions of the schema
// `economy`. Sets go in and come out as sets, one answer for each item in the caller's order; a business outcome is an
// answer, never an exception.
//
// What is thrown is what pg::Pool throws: then nothing was done, or, for CommitUnknown, the outcome is not known.
#pragma once

#include <string>
#include <vector>

#include "pg/pool.hpp"
#include "transfer/transfer.hpp"

namespace fencepost::transfer {

enum class CreateOutcome {
  kCreated,
  kExisting,       // the key was used before, for the same
  kConflict,       // the key was used before, for something else
  kInvalid,        // no amount, no such id, to oneself
  kAccountLocked,  // not done: another session keeps one of the accounts locked
};
struct CreateResult {
  CreateOutcome outcome = CreateOutcome::kInvalid;
  std::optional<Uuid> transfer_id;  // of a conflict: whose key it is
  std::optional<TransferStatus> status;
};

enum class SyncOutcome {
  kCompleted,
  kExisting,
  kConflict,
  kInvalid,
  kInsufficientBalance,
  kCooldown,
  kDailyLimit,
  kAccountLocked,
};
struct SyncResult {
  SyncOutcome outcome = SyncOutcome::kInvalid;
  std::optional<Uuid> transfer_id;
  std::optional<TransferStatus> status;
  std::optional<std::int64_t> ledger_id;
  std::optional<std::int64_t> initiator_balance;  // after it
  std::optional<std::int64_t> target_balance;
  std::optional<TimePoint> created_at;
  std::optional<std::int64_t> available;     // kInsufficientBalance
  std::optional<TimePoint> throttled_until;  // kCooldown
  std::optional<std::int64_t> used_today;    // kDailyLimit
  std::optional<std::int64_t> daily_limit;
};
struct SyncResults {
  std::vector<SyncResult> items;
  bool woken = false;  // transfers that waited became due: the nodes should hear of it, after the commit
};

struct ProcessResult {
  std::int64_t claimed = 0;
  std::int64_t completed = 0;
  std::int64_t approved = 0;
  std::int64_t waiting = 0;
  std::int64_t denied = 0;
  std::int64_t put_off = 0;                           // other sessions keep their accounts locked
  bool more = false;                                  // call again at once
  bool busy = false;                                  // another session works on a lane with due work
  std::optional<std::chrono::milliseconds> next_due;  // of what is not due yet, from now
};

struct PoolState {
  std::int64_t waiting = 0;
  std::int64_t approved = 0;
  std::int64_t retries_due = 0;
  std::int64_t due = 0;                                      // these, and what is approved
  std::optional<std::chrono::milliseconds> oldest_waiting;   // since it was created
  std::optional<std::chrono::milliseconds> oldest_due;       // since it was due
  std::optional<std::chrono::milliseconds> oldest_approved;  // since it was approved
  std::optional<Uuid> oldest_approved_id;
  double notify_queue = 0;  // how full PostgreSQL's queue of notifications is; at 1 every commit that notifies fails
};

class PendingTransferGateway {
 public:
  explicit PendingTransferGateway(pg::Pool& pool) : pool_(pool) {}

  // A set waits at most `patience` for locks, and then goes on without the items whose accounts are locked.
  awaitable<std::vector<CreateResult>> create(std::span<const NewTransfer> transfers,
                                              std::chrono::milliseconds patience);
  awaitable<SyncResults> transfer_now(std::span<const NewTransfer> transfers, std::chrono::milliseconds patience);

  // Carries out at most `limit` due transfers in one transaction. `process_only`: these and no others, without waiting
  // for locks.
  awaitable<ProcessResult> process_due(std::size_t limit, std::chrono::milliseconds patience);
  awaitable<ProcessResult> process_only(std::vector<Uuid> only);
  // The transfers that process_due would take next, to find the one that makes a set fail.
  awaitable<std::vector<Uuid>> list_due(std::size_t limit);
  awaitable<> defer(Uuid transfer_id, std::chrono::milliseconds delay);
  awaitable<std::int64_t> expire(std::size_t limit);

  // Nothing: no such transfer. In both modes.
  awaitable<std::optional<Transfer>> find(Uuid transfer_id);
  // Newest first; `before` is the seq of the last one of the page before.
  awaitable<std::vector<Transfer>> list(std::int64_t guild_id, std::optional<TransferStatus> status,
                                        std::optional<std::int64_t> before, std::size_t limit);
  struct Cancelled {
    bool cancelled = false;
    std::optional<TransferStatus> status;  // afterwards; none: no such transfer
  };
  awaitable<Cancelled> cancel(Uuid transfer_id);

  awaitable<PoolState> pool_state();
  // Notifies the nodes that something may be due.
  awaitable<> wake_nodes();

 private:
  pg::Pool& pool_;
};

}  // namespace fencepost::transfer

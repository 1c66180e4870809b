// TransferService: creates, finds and cancels transfers for callers. Concurrent requests are processed as sets: while
// one set is in flight, new requests gather in the next. On an idle node a request does not wait.
//
// Call from any loop of the runtime.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "pg/batched_write.hpp"
#include "pg/database.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runtime.hpp"
#include "transfer/account_store.hpp"
#include "transfer/options.hpp"
#include "transfer/patience.hpp"
#include "transfer/pending_transfer_gateway.hpp"

namespace fencepost::transfer {

// A completed synchronous transfer.
struct TransferResult {
  Uuid transfer_id;
  std::int64_t ledger_id = 0;
  std::int64_t initiator_balance = 0;
  std::int64_t target_balance = 0;
  TimePoint created_at;
  bool existing = false;  // the key was used before for the same transfer
};
// A transfer in the pool.
struct Accepted {
  Uuid transfer_id;
  TransferStatus status = TransferStatus::kChecking;
  bool existing = false;
};
using TransferOutcome = std::variant<TransferResult, Accepted>;

// kNotFound `no_such_transfer`.
Error no_such_transfer();

class TransferService {
 public:
  TransferService(Runtime& runtime, pg::Database& database, TransferOptions options, Metrics& metrics);

  // Set before start. Called on any loop when transfers may have become due. here_only true: wake this node only, the
  // database notifies the others. here_only false: wake every node, because no notification was sent.
  void on_due(std::function<void(bool here_only)> callback);
  // Called after a commit that appended events and sent no notification.
  void on_events(std::function<void()> callback) { on_events_ = std::move(callback); }

  void start();
  awaitable<> stop(std::chrono::milliseconds grace);

  Mode default_mode() const { return options_.event_pool_enabled ? Mode::kPool : Mode::kSync; }

  // Errors of both: kInvalid `invalid_transfer`; kConflict `idempotency_conflict` with `transferId`; kUnavailable
  // `account_locked` if another database session has locked an account. Synchronous mode only: kUnprocessable
  // `insufficient_balance` with `balance` and `required`, `cooldown` with `until` and a retry-after, `daily_limit` with
  // `used` and `limit`. A key that was used in the other mode returns that transfer. Throws as pg::Pool does.
  awaitable<Result<TransferOutcome>> transfer_currency(NewTransfer transfer, Mode mode);

  // Returns nothing if the transfer does not exist.
  awaitable<std::optional<Transfer>> get_transfer_status(Uuid transfer_id);
  // Errors: kNotFound `no_such_transfer`; kConflict `not_cancellable` with `transferStatus`.
  awaitable<Result<Transfer>> cancel(Uuid transfer_id);
  // For operators: rejects an approved transfer, and stores the reason and the actor. Errors: kNotFound
  // `no_such_transfer`; kConflict `not_failable` with `transferStatus`.
  awaitable<Result<Transfer>> fail_transfer(Uuid transfer_id, std::string reason, std::string actor);

  // The gateway of the caller's loop, for calls that need no rules.
  PendingTransferGateway gateway() { return PendingTransferGateway(database_.pool()); }
  AccountStore accounts() { return AccountStore(database_.pool()); }

 private:
  awaitable<std::vector<CreateResult>> create(std::span<const NewTransfer> items);
  awaitable<std::vector<SyncResult>> transfer_now(std::span<const NewTransfer> items);
  awaitable<Result<TransferOutcome>> into_pool(NewTransfer transfer);
  awaitable<Result<TransferOutcome>> at_once(NewTransfer transfer);
  Metrics::Counter& requests_total(Mode mode, std::string_view result);

  pg::Database& database_;
  TransferOptions options_;
  Metrics& metrics_;
  std::function<void(bool)> on_due_;
  std::function<void()> on_events_;
  // Creating waits longer: it locks only payers, but queues behind sets that lock payees too.
  Patience create_patience_{std::chrono::seconds(2), std::chrono::milliseconds(500)};
  Patience sync_patience_{std::chrono::seconds(2), std::chrono::milliseconds(100)};
  pg::BatchedWrite<NewTransfer, CreateResult> creates_;
  pg::BatchedWrite<NewTransfer, SyncResult> syncs_;
  Metrics::Counter& pool_ok_;  // looking a counter up costs more than counting
  Metrics::Counter& sync_ok_;
};

}  // namespace fencepost::transfer

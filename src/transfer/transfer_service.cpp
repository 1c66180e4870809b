#include "transfer/transfer_service.hpp"

#include "http/errors.hpp"
#include "runtime/test_point.hpp"

namespace fencepost::transfer {
namespace {

using http::unprocessable;

Error no_transfer() {
  return invalid("invalid_transfer",
                 "the amount and the ids must be positive, and initiatorId and targetId must differ");
}

Error key_conflict(const std::optional<Uuid>& transfer_id) {
  auto error =
      conflict("idempotency_conflict", "this idempotencyKey was already used for a different transfer; use a new key");
  return transfer_id ? error.with("transferId", transfer_id->to_string()) : error;
}

Error account_locked() {
  return unavailable("account_locked",
                     "another database session has locked one of the accounts: nothing was done, retry")
      .after(std::chrono::seconds(1));
}

std::string text_or_zero(const std::optional<std::int64_t>& number) {
  return std::to_string(number.value_or(0));
}

// One lane per guild: pool sets are large, and two sets of one guild would wait for each other's accounts.
std::string pool_lane(const NewTransfer& transfer) {
  return std::to_string(transfer.guild_id);
}

// One lane per payer: synchronous sets are small, and two sets of one guild rarely conflict except on the payer.
std::string sync_lane(const NewTransfer& transfer) {
  return std::to_string(transfer.guild_id) + '/' + std::to_string(transfer.initiator_id);
}

}  // namespace

Error no_such_transfer() {
  return not_found("no_such_transfer", "no transfer has this id, or this key may not see it");
}

TransferService::TransferService(Runtime& runtime, pg::Database& database, TransferOptions options, Metrics& metrics)
    : database_(database),
      options_(options),
      metrics_(metrics),
      creates_(
          runtime, {.name = "transfer_create", .lanes = options.lanes, .max_batch = options.batch},
          [this](std::span<const NewTransfer> items) { return create(items); }, metrics),
      syncs_(
          runtime, {.name = "transfer_sync", .lanes = options.lanes, .max_batch = options.batch},
          [this](std::span<const NewTransfer> items) { return transfer_now(items); }, metrics),
      pool_ok_(requests_total(Mode::kPool, "ok")),
      sync_ok_(requests_total(Mode::kSync, "ok")) {}

void TransferService::start() {
  creates_.start();
  syncs_.start();
}

awaitable<> TransferService::stop(std::chrono::milliseconds grace) {
  co_await creates_.stop(grace / 2);
  co_await syncs_.stop(grace / 2);
}

void TransferService::on_due(std::function<void(bool here_only)> callback) {
  on_due_ = std::move(callback);
}

Metrics::Counter& TransferService::requests_total(Mode mode, std::string_view result) {
  return metrics_.counter("transfer_requests_total", "Requests for a transfer, by result",
                          {{"mode", mode == Mode::kSync ? "sync" : "pool"}, {"result", std::string(result)}});
}

awaitable<std::vector<CreateResult>> TransferService::create(std::span<const NewTransfer> items) {
  auto results = co_await gateway().create(items, create_patience_.get());
  bool due = false;
  for (const auto& result : results) {
    due = due || result.status == TransferStatus::kApproved;
    if (result.outcome == CreateOutcome::kAccountLocked) create_patience_.account_was_locked();
  }
  if (due) test_point("transfer.approved");
  if (due && on_due_) on_due_(true);  // the commit itself notifies the other nodes
  co_return results;
}

awaitable<std::vector<SyncResult>> TransferService::transfer_now(std::span<const NewTransfer> items) {
  auto results = co_await gateway().transfer_now(items, sync_patience_.get());
  bool moved = false;
  for (const auto& result : results.items) {
    if (result.outcome == SyncOutcome::kAccountLocked) sync_patience_.account_was_locked();
    moved = moved || result.outcome == SyncOutcome::kCompleted;
  }
  if (moved && on_events_) on_events_();
  if (results.woken && on_due_) on_due_(false);
  co_return std::move(results.items);
}

awaitable<Result<TransferOutcome>> TransferService::transfer_currency(NewTransfer transfer, Mode mode) {
  const auto transfer_id = transfer.transfer_id;
  std::optional<Error> unknown;
  try {
    auto outcome =
        mode == Mode::kPool ? co_await into_pool(std::move(transfer)) : co_await at_once(std::move(transfer));
    auto& counter = !outcome ? requests_total(mode, outcome.error().code) : mode == Mode::kPool ? pool_ok_ : sync_ok_;
    counter.Increment();
    co_return outcome;
  } catch (const pg::CommitUnknown& e) {
    unknown = e.error();
  }
  // With the transfer id, the caller can look up whether the commit happened.
  requests_total(mode, unknown->code).Increment();
  throw Exception(std::move(*unknown).with("transferId", transfer_id.to_string()));
}

awaitable<Result<TransferOutcome>> TransferService::into_pool(NewTransfer transfer) {
  const auto lane = pool_lane(transfer);
  const auto created = co_await creates_.submit(lane, std::move(transfer));
  switch (created.outcome) {
    case CreateOutcome::kCreated:
    case CreateOutcome::kExisting:
      co_return Accepted{.transfer_id = created.transfer_id.value(),
                         .status = created.status.value(),
                         .existing = created.outcome == CreateOutcome::kExisting};
    case CreateOutcome::kConflict:
      co_return fail(key_conflict(created.transfer_id));
    case CreateOutcome::kAccountLocked:
      co_return fail(account_locked());
    case CreateOutcome::kInvalid:
      break;
  }
  co_return fail(no_transfer());
}

awaitable<Result<TransferOutcome>> TransferService::at_once(NewTransfer transfer) {
  const auto lane = sync_lane(transfer);
  const auto required = std::to_string(transfer.amount);
  const auto result = co_await syncs_.submit(lane, std::move(transfer));
  switch (result.outcome) {
    case SyncOutcome::kCompleted:
    case SyncOutcome::kExisting:
      // The key may belong to a pool transfer that is not completed yet.
      if (!result.ledger_id) {
        co_return Accepted{
            .transfer_id = result.transfer_id.value(), .status = result.status.value(), .existing = true};
      }
      co_return TransferResult{.transfer_id = result.transfer_id.value(),
                               .ledger_id = *result.ledger_id,
                               .initiator_balance = result.initiator_balance.value(),
                               .target_balance = result.target_balance.value(),
                               .created_at = result.created_at.value(),
                               .existing = result.outcome == SyncOutcome::kExisting};
    case SyncOutcome::kConflict:
      co_return fail(key_conflict(result.transfer_id));
    case SyncOutcome::kAccountLocked:
      co_return fail(account_locked());
    case SyncOutcome::kInsufficientBalance:
      co_return fail(unprocessable("insufficient_balance", "the initiator's available balance is less than the amount")
                         .with("balance", text_or_zero(result.available))
                         .with("required", required));
    case SyncOutcome::kCooldown: {
      const auto until = result.throttled_until.value();
      const auto left = std::chrono::ceil<std::chrono::seconds>(until - std::chrono::system_clock::now());
      co_return fail(
          unprocessable("cooldown", "the initiator is in the cooldown after its last transfer: retry after `until`")
              .with("until", to_rfc3339(until))
              .after(std::max(left, std::chrono::seconds(1))));
    }
    case SyncOutcome::kDailyLimit:
      co_return fail(unprocessable("daily_limit", "the amount exceeds what the initiator may still transfer today")
                         .with("used", text_or_zero(result.used_today))
                         .with("limit", text_or_zero(result.daily_limit)));
    case SyncOutcome::kInvalid:
      break;
  }
  co_return fail(no_transfer());
}

awaitable<std::optional<Transfer>> TransferService::get_transfer_status(Uuid transfer_id) {
  co_return co_await gateway().find(transfer_id);
}

awaitable<Result<Transfer>> TransferService::cancel(Uuid transfer_id) {
  const auto done = co_await gateway().cancel(transfer_id);
  if (!done.cancelled && done.status) {
    co_return fail(conflict("not_cancellable", "only a transfer that is not yet approved can be cancelled")
                       .with("transferStatus", std::string(kPendingTransfer.name(*done.status))));
  }
  auto transfer = co_await get_transfer_status(transfer_id);
  if (!transfer) co_return fail(no_such_transfer());
  if (!done.cancelled) {
    co_return fail(conflict("not_cancellable", "a synchronous transfer cannot be cancelled: it is already completed")
                       .with("transferStatus", "completed"));
  }
  co_return std::move(*transfer);
}

awaitable<Result<Transfer>> TransferService::fail_transfer(Uuid transfer_id, std::string reason, std::string actor) {
  const auto done = co_await gateway().fail(transfer_id, std::move(reason), std::move(actor));
  auto transfer = co_await get_transfer_status(transfer_id);
  if (!transfer) co_return fail(no_such_transfer());
  if (done.failed) co_return std::move(*transfer);
  const auto status = done.status.value_or(transfer->status);
  co_return fail(conflict("not_failable", "only a transfer that is approved and not yet completed can be failed")
                     .with("transferStatus", std::string(kPendingTransfer.name(status))));
}

}  // namespace fencepost::transfer

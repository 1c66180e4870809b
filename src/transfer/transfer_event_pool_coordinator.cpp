#include "transfer/transfer_event_pool_coordinator.hpp"

#include <algorithm>

#include "pg/halving.hpp"
#include "runtime/log.hpp"
#include "runtime/test_point.hpp"
#include "transfer/execution_failure.hpp"

namespace fencepost::transfer {
namespace {

constexpr std::size_t kExpiredAtOnce = 1'000;
constexpr std::chrono::milliseconds kPutOff = std::chrono::minutes(1);
constexpr std::chrono::milliseconds kLaneTaken{100};
constexpr auto kGauges = std::chrono::seconds(10);

double seconds(const std::optional<std::chrono::milliseconds>& time) {
  return time ? std::chrono::duration<double>(*time).count() : 0.0;
}

Metrics::Counter& outcome(Metrics& metrics, const char* name) {
  return metrics.counter("transfer_pool_outcomes_total", "Transfers in the pool, by outcome", {{"outcome", name}});
}

void warn_about(const LaneHolder& holder, std::string_view message) {
  log::warn(message, {{"pid", holder.pid}, {"role", holder.role}, {"application", holder.application}});
}

}  // namespace

TransferEventPoolCoordinator::TransferEventPoolCoordinator(Executor home, pg::Database& database,
                                                           const TransferOptions& options, Metrics& metrics)
    : database_(database),
      options_(options),
      completed_total_(outcome(metrics, "completed")),
      approved_total_(outcome(metrics, "approved_later")),
      denied_total_(outcome(metrics, "denied")),
      put_off_total_(outcome(metrics, "put_off")),
      failed_total_(outcome(metrics, "failed")),
      waiting_(metrics.gauge("transfer_pool_waiting", "Transfers whose checks have not passed yet")),
      approved_(metrics.gauge("transfer_pool_approved", "Transfers that are approved and not completed")),
      due_(metrics.gauge("transfer_pool_due", "Transfers that are due now")),
      oldest_waiting_(metrics.gauge("transfer_pool_oldest_waiting_seconds", "Age of the oldest transfer that waits")),
      oldest_due_(metrics.gauge("transfer_pool_oldest_due_seconds", "How long the oldest due transfer has been due")),
      oldest_approved_(metrics.gauge("transfer_pool_oldest_approved_seconds",
                                     "How long the oldest approved transfer has not been completed")),
      without_lanes_(metrics.gauge("transfer_pool_without_lanes",
                                   "1 while a session keeps a lane and this node works without lanes")),
      notify_queue_(
          metrics.gauge("pg_notification_queue_usage_ratio",
                        "How full PostgreSQL's queue of notifications is; when full, commits that notify fail")),
      next_due_(home),
      worker_(
          home,
          {.name = "transfer_coordinator",
           .interval = options.sweep_interval,
           .backoff = {.initial = std::chrono::milliseconds(100), .cap = std::chrono::seconds(2)}},
          [this] { return process(); }, metrics),
      expiry_(
          home, {.name = "transfer_expiry", .interval = options.expiry_interval}, [this] { return expire(); }, metrics),
      gauges_(
          home, {.name = "transfer_gauges", .interval = kGauges, .stop_grace = std::chrono::milliseconds(0)},
          [this] { return measure(); }, metrics),
      hints_(
          home, {.name = "transfer_hints", .interval = std::chrono::hours(24)},
          [this]() -> awaitable<Worker::Next> {
            co_await PendingTransferGateway(database_.pool()).wake_nodes();
            co_return Worker::Next::kRest;
          },
          metrics) {}

void TransferEventPoolCoordinator::start() {
  worker_.start();
  expiry_.start();
  gauges_.start();
  hints_.start();
}

awaitable<> TransferEventPoolCoordinator::stop() {
  next_due_.cancel();
  co_await hints_.stop();
  co_await gauges_.stop();
  co_await expiry_.stop();
  co_await worker_.stop();
  next_due_.cancel();  // a step that was still running may have set the timer
}

void TransferEventPoolCoordinator::wake_everywhere() {
  worker_.wake();
  hints_.wake();
}

awaitable<Worker::Next> TransferEventPoolCoordinator::process() {
  if (!hold_lanes_) co_await free_lanes();
  const auto done = co_await process_set();
  if (done.completed > 0) test_point("transfer.completed");
  note(done);
  if (done.put_off > 0) patience_.account_was_locked();
  if (done.lane_busy) {
    co_await free_lanes();
  } else if (hold_lanes_) {
    busy_since_.reset();
  }
  if (done.more) co_return Worker::Next::kAgain;
  // Look again soon: a node that dies while it works on a lane sends no notification.
  auto next = done.next_due;
  if (done.busy) next = std::min(next.value_or(kLaneTaken), kLaneTaken);
  if (next) come_back_in(*next);
  co_return Worker::Next::kRest;
}

// A node that is stopped in the middle of a transaction holds its lanes as long as its connection lives. While a holder
// that cannot be terminated keeps a lane, sets go without lanes: the locks of rows are enough to move money once.
awaitable<> TransferEventPoolCoordinator::free_lanes() {
  const auto now = std::chrono::steady_clock::now();
  if (!busy_since_) busy_since_ = now;
  if (now - *busy_since_ < options_.lane_patience) co_return;
  busy_since_ = now;
  const auto holders = co_await PendingTransferGateway(database_.pool()).end_lane_holders(options_.lane_patience);
  const LaneHolder* keeper = nullptr;
  for (const auto& holder : holders) {
    if (holder.ended) warn_about(holder, "terminated a database session that held a lane and waited for its client");
    if (holder.keeps) keeper = &holder;
  }
  if (keeper != nullptr && hold_lanes_) {
    warn_about(*keeper, "a database session keeps a lane: transfers are processed without lanes until it ends");
  }
  hold_lanes_ = keeper == nullptr;
  without_lanes_.Set(hold_lanes_ ? 0 : 1);
}

awaitable<ProcessResult> TransferEventPoolCoordinator::process_set() {
  try {
    co_return co_await PendingTransferGateway(database_.pool())
        .process_due(options_.batch, patience_.get(), hold_lanes_);
  } catch (const pg::QueryError& error) {
    if (!pg::may_be_one_item(error)) throw;
    log::error("PostgreSQL refused a set of transfers; searching for the transfer at fault", error.error());
  }
  co_return co_await process_by_halves();
}

awaitable<ProcessResult> TransferEventPoolCoordinator::process_by_halves() {
  struct Processed {};
  const auto due = co_await PendingTransferGateway(database_.pool()).list_due(options_.batch);
  ProcessResult all{.more = true};
  if (due.empty()) co_return all;
  const auto write = [this, &all](std::span<const Uuid> some) -> awaitable<std::vector<Processed>> {
    const auto done =
        co_await PendingTransferGateway(database_.pool()).process_only({some.begin(), some.end()}, hold_lanes_);
    all.completed += done.completed;
    all.approved += done.approved;
    all.denied += done.denied;
    all.put_off += done.put_off;
    co_return std::vector<Processed>(some.size());
  };
  const auto outcomes = co_await pg::write_or_halve<Processed>(std::span<const Uuid>(due), write);
  for (std::size_t i = 0; i < due.size(); ++i) {
    if (outcomes[i]) continue;
    const auto id = due[i].to_string();
    // Defer only a transfer that PostgreSQL refuses by itself; after a lost connection, retry all of them.
    if (!pg::may_be_one_item(outcomes[i].error())) {
      log::warn("a transfer was not processed", error_of(outcomes[i].error()), {{"transferId", id}});
      continue;
    }
    ++all.put_off;
    auto gateway = PendingTransferGateway(database_.pool());
    if (!counts_as_try(outcomes[i].error())) {
      log::error("a transfer cannot be processed and is deferred", error_of(outcomes[i].error()),
                 {{"transferId", id}, {"delayMs", kPutOff.count()}});
      co_await gateway.defer(due[i], kPutOff);
    } else if (co_await gateway.execution_refused(due[i], kPutOff)) {
      failed_total_.Increment();
      log::error("a transfer could not be executed and is rejected", error_of(outcomes[i].error()),
                 {{"transferId", id}});
    } else {
      log::error("a transfer could not be executed and is deferred", error_of(outcomes[i].error()),
                 {{"transferId", id}, {"delayMs", kPutOff.count()}});
    }
  }
  co_return all;
}

awaitable<Worker::Next> TransferEventPoolCoordinator::expire() {
  const auto expired = co_await PendingTransferGateway(database_.pool()).expire(kExpiredAtOnce);
  denied_total_.Increment(static_cast<double>(expired));
  if (expired > 0) log::info("transfers have expired", {{"transfers", expired}});
  co_return expired == static_cast<std::int64_t>(kExpiredAtOnce) ? Worker::Next::kAgain : Worker::Next::kRest;
}

awaitable<Worker::Next> TransferEventPoolCoordinator::measure() {
  const auto state = co_await PendingTransferGateway(database_.pool()).pool_state();
  waiting_.Set(static_cast<double>(state.waiting));
  approved_.Set(static_cast<double>(state.approved));
  due_.Set(static_cast<double>(state.due));
  oldest_waiting_.Set(seconds(state.oldest_waiting));
  oldest_due_.Set(seconds(state.oldest_due));
  oldest_approved_.Set(seconds(state.oldest_approved));
  notify_queue_.Set(state.notify_queue);
  co_return Worker::Next::kRest;
}

void TransferEventPoolCoordinator::come_back_in(std::chrono::milliseconds delay) {
  if (delay >= options_.sweep_interval) return;
  next_due_.expires_after(std::max(delay, std::chrono::milliseconds(1)));
  next_due_.async_wait([this](const boost::system::error_code& ec) {
    if (!ec) worker_.wake();
  });
}

void TransferEventPoolCoordinator::note(const ProcessResult& done) {
  completed_total_.Increment(static_cast<double>(done.completed));
  approved_total_.Increment(static_cast<double>(done.approved));
  denied_total_.Increment(static_cast<double>(done.denied));
  put_off_total_.Increment(static_cast<double>(done.put_off));
}

}  // namespace fencepost::transfer

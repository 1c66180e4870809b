#include "timelock/workers/flow_status_refresher.hpp"

#include <utility>

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "timelock/store/due_store.hpp"
#include "timelock/store/scan_store.hpp"

namespace fencepost::timelock {
namespace {

using namespace std::chrono_literals;

constexpr auto kCounterHelp = "Flows that the chain's clock has moved";

std::int64_t seconds(std::chrono::milliseconds duration) {
  return std::chrono::ceil<std::chrono::seconds>(duration).count();
}

}  // namespace

FlowStatusRefresher::FlowStatusRefresher(ScannerParts parts, const ScannerOptions& options)
    : parts_(std::move(parts)),
      options_(options),
      ready_total_(parts_.metrics.counter("timelock_flows_moved_total", kCounterHelp,
                                          {{"chain", parts_.chain.name()}, {"to", "ready"}})),
      expired_total_(parts_.metrics.counter("timelock_flows_moved_total", kCounterHelp,
                                            {{"chain", parts_.chain.name()}, {"to", "expired"}})),
      worker_(
          parts_.chain.home(),
          {.name = "timelock_flow_refresh", .chain = parts_.chain.name(), .interval = options.flow_refresh_interval},
          [this] { return step(); }, parts_.metrics) {}

awaitable<Worker::Next> FlowStatusRefresher::step() {
  using namespace asio::experimental::awaitable_operators;  // a step that is cancelled ends after both batches
  if (std::exchange(has_more_, false)) {
    const auto [first, second] = co_await (move_batch() && move_batch());
    has_more_ = first || second;
  } else {
    has_more_ = co_await move_batch();
  }
  co_return has_more_ ? Worker::Next::kAgain : Worker::Next::kRest;
}

// Returns whether there may be more.
awaitable<bool> FlowStatusRefresher::move_batch() {
  const auto chain_id = parts_.chain.id();
  const auto limit = options_.flow_refresh_batch_size;
  std::size_t expired = 0;
  std::size_t ready = 0;
  std::size_t reminded = 0;
  const auto body = [&](pg::Transaction& tx) -> awaitable<bool> {
    const auto state = co_await lock_scan(tx, chain_id, ScanLock::kShared);
    if (!state) co_return false;
    const auto now = state->point.timestamp;
    auto late = co_await get_compound_flows_expired(tx, chain_id, now, limit);
    const bool all_late = late.size() < limit;
    expired = co_await update_flow_status(tx, std::move(late), FlowStatus::kExpired, parts_.node);
    if (!all_late) co_return true;
    auto due = co_await get_waiting_flows_due(tx, chain_id, now, limit);
    const bool all_due = due.size() < limit;
    ready = co_await update_flow_status(tx, std::move(due), FlowStatus::kReady, parts_.node);
    reminded = 0;
    if (options_.remind_before_expiry > 0ms || options_.remind_ready_after > 0ms) {
      reminded = co_await remind(tx, chain_id, now, seconds(options_.remind_before_expiry),
                                 seconds(options_.remind_ready_after), limit);
    }
    co_return !all_due || reminded >= limit;
  };
  const bool more = co_await pg::transaction(parts_.database.pool(), body);
  expired_total_.Increment(static_cast<double>(expired));
  ready_total_.Increment(static_cast<double>(ready));
  co_return more;
}

}  // namespace fencepost::timelock

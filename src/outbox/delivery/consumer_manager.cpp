#include "outbox/delivery/consumer_manager.hpp"

#include <algorithm>
#include <cassert>

#include "runtime/gather.hpp"
#include "runtime/log.hpp"

namespace fencepost::outbox {
namespace {

using SteadyTime = std::chrono::steady_clock;

constexpr auto kLagEvents = "event_consumer_lag_events";
constexpr auto kLagSeconds = "event_consumer_lag_seconds";

}  // namespace

ConsumerManager::ConsumerManager(Parts parts, std::string node_id, const DeliveryOptions& options)
    : parts_(parts),
      node_id_(std::move(node_id)),
      options_(options),
      claimed_gauge_(
          parts.metrics.gauge("event_consumers_claimed", "Consumers of the event log that this node serves")),
      unclaimed_gauge_(
          parts.metrics.gauge("event_consumers_unclaimed", "Active consumers of the event log that no node serves")),
      worker_(
          parts.runtime.executor(0),
          {.name = "event_consumers",
           .interval = options.renew_interval,
           .backoff = {.initial = std::chrono::milliseconds(100), .cap = options.renew_interval},
           .stop_grace = 2 * options.stop_grace + std::chrono::seconds(1)},  // a step may wait for runners to stop
          [this] { return look(); }, parts.metrics) {
  parts_.listener.subscribe(
      std::string(kConsumerChannel), [this](std::string_view) { worker_.wake(); }, [this] { worker_.wake(); });
}

ConsumerManager::~ConsumerManager() {
  assert(served_.empty() && "ConsumerManager destroyed before stop() finished");
}

void ConsumerManager::add_kind(std::string kind, SinkFactory factory) {
  const auto counter = [&](const char* result) {
    return &parts_.metrics.counter("event_consumer_events_total", "Events that consumers have handled or skipped",
                                   {{"kind", kind}, {"result", result}});
  };
  kinds_.emplace(kind, KindParts{std::move(factory), counter("handled"), counter("skipped")});
}

void ConsumerManager::start() {
  worker_.start();
}

awaitable<> ConsumerManager::stop(std::chrono::milliseconds limit) {
  // PostgreSQL may not answer: no part of this may take all of the time that is left.
  co_await worker_.stop(limit / 4);
  std::vector<std::string> all;
  all.reserve(served_.size());
  for (const auto& [consumer, served] : served_) all.push_back(consumer);
  co_await stop_runners(all, std::min(options_.stop_grace, limit / 4));
  const auto last = reports();
  for (const auto& consumer : all) forget(consumer);
  show();
  co_await release_claims(parts_.database.pool(), node_id_, last, true,
                          std::min<std::chrono::milliseconds>(std::chrono::seconds(1), limit / 4));
}

awaitable<Worker::Next> ConsumerManager::look() {
  show();
  std::set<std::string> kinds;
  for (const auto& [kind, parts] : kinds_) kinds.insert(kind);
  const auto asked_at = SteadyTime::now();
  const auto overview = co_await renew_claims(parts_.database.pool(), node_id_, {kinds.begin(), kinds.end()}, reports(),
                                              options_.claim_duration);
  renew_locally(overview, asked_at);

  std::map<std::string, Claim> mine;
  std::vector<std::string> lost;  // a write was refused
  for (const auto& [consumer, served] : served_) {
    if (served.runner->lost()) {
      lost.push_back(consumer);
    } else {
      mine.emplace(consumer, served.claim);
    }
  }
  co_await drop(std::move(lost));
  const auto plan = plan_claims(overview, kinds, mine, options_.max_consumers);
  unclaimed_gauge_.Set(static_cast<double>(plan.unclaimed));
  co_await drop(plan.drop);
  co_await release(plan.release);
  co_await restart(plan.restart, overview, asked_at);
  for (const auto& [kind, count] : plan.take) co_await take(kind, count);
  show();
  co_return Worker::Next::kRest;
}

// A claim may not have been renewed, because its row was locked: the overview says how long it is valid.
void ConsumerManager::renew_locally(const ConsumerOverview& overview, Deadline asked_at) {
  for (const auto& view : overview.consumers) {
    const auto found = served_.find(view.consumer);
    if (found == served_.end() || !view.claimed) continue;
    const auto& claim = found->second.claim;
    if (view.owner_node == claim.node && view.token == claim.token) {
      found->second.runner->renewed(asked_at + view.claimed_for);
    }
  }
}

awaitable<> ConsumerManager::drop(std::vector<std::string> consumers) {
  co_await stop_runners(consumers, std::chrono::milliseconds(0));
  for (const auto& consumer : consumers) forget(consumer);
}

awaitable<> ConsumerManager::release(std::vector<std::string> consumers) {
  if (consumers.empty()) co_return;
  co_await stop_runners(consumers, options_.stop_grace);
  std::vector<ClaimReport> last;
  for (const auto& consumer : consumers) {
    if (const auto found = served_.find(consumer); found != served_.end())
      last.push_back(found->second.runner->report());
    forget(consumer);
  }
  co_await release_claims(parts_.database.pool(), node_id_, std::move(last), false);
}

awaitable<> ConsumerManager::restart(std::vector<std::string> consumers, const ConsumerOverview& overview,
                                     Deadline asked_at) {
  co_await stop_runners(consumers, options_.stop_grace);
  for (const auto& view : overview.consumers) {
    if (std::ranges::find(consumers, view.consumer) == consumers.end()) continue;
    const auto found = served_.find(view.consumer);
    if (found == served_.end()) continue;
    TakenClaim again{.claim = found->second.claim, .position = found->second.runner->report().position};
    again.claim.revision = view.revision;
    forget(view.consumer);
    co_await serve(std::move(again), asked_at + view.claimed_for);
  }
}

awaitable<> ConsumerManager::take(const std::string& kind, std::size_t count) {
  const auto asked_at = SteadyTime::now();
  const auto taken = co_await take_claims(parts_.database.pool(), node_id_, kind, count, options_.claim_duration);
  for (const auto& claim : taken) {
    log::info("serving a consumer of the event log",
              {{"consumer", claim.claim.consumer}, {"token", claim.claim.token}, {"position", claim.position}});
    co_await serve(claim, asked_at + options_.claim_duration);
  }
}

awaitable<> ConsumerManager::serve(TakenClaim taken, Deadline valid_until) {
  const auto consumer = taken.claim.consumer;
  const auto claim = taken.claim;
  auto& kind = kinds_.at(std::string(kind_of(consumer)));
  const auto home = parts_.runtime.executor(next_loop_++ % parts_.runtime.size());
  auto runner = std::make_unique<ConsumerRunner>(
      home, ConsumerRunner::Parts{parts_.feed, parts_.database, *kind.delivered_total, *kind.skipped_total},
      kind.factory, std::move(taken), valid_until,
      RunnerOptions{.claim_duration = options_.claim_duration, .backoff = options_.backoff}, [this] { wake(); });
  const Metrics::Labels labels{{"consumer", consumer}};
  auto& events = parts_.metrics.gauge(
      kLagEvents, "Numbers of the log that the consumer has not reached, and events that wait for a retry", labels);
  auto& seconds =
      parts_.metrics.gauge(kLagSeconds, "For how long the oldest event waits that the receiver does not have", labels);
  auto& running = *runner;
  served_.emplace(consumer, Served{std::move(runner), claim, &events, &seconds});
  co_await running.start();
}

// All at once: one that takes long delays no other.
awaitable<> ConsumerManager::stop_runners(std::vector<std::string> consumers, std::chrono::milliseconds grace) {
  std::vector<awaitable<>> stops;
  for (const auto& consumer : consumers) {
    if (const auto found = served_.find(consumer); found != served_.end()) {
      stops.push_back(found->second.runner->stop(grace));
    }
  }
  co_await fencepost::gather(std::move(stops));
}

std::vector<ClaimReport> ConsumerManager::reports() const {
  std::vector<ClaimReport> out;
  out.reserve(served_.size());
  for (const auto& [consumer, served] : served_) out.push_back(served.runner->report());
  return out;
}

void ConsumerManager::forget(const std::string& consumer) {
  const auto found = served_.find(consumer);
  if (found == served_.end()) return;
  parts_.metrics.remove(kLagEvents, *found->second.lag_events);
  parts_.metrics.remove(kLagSeconds, *found->second.lag_seconds);
  served_.erase(found);
}

void ConsumerManager::show() {
  claimed_gauge_.Set(static_cast<double>(served_.size()));
  const auto newest = parts_.feed.newest();
  for (const auto& [consumer, served] : served_) {
    const auto lag = served.runner->lag();
    const auto behind = std::max<std::int64_t>(newest - lag.position, 0);
    std::chrono::duration<double> age{0};
    if (lag.oldest_pending) age = std::max(age, {parts_.clock.now() - *lag.oldest_pending});
    if (lag.waiting.since) age = std::max(age, {SteadyTime::now() - *lag.waiting.since});
    served.lag_events->Set(static_cast<double>(behind) + static_cast<double>(lag.waiting.events));
    served.lag_seconds->Set(age.count());
  }
}

}  // namespace fencepost::outbox

#include "outbox/webhook/webhook_sink.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "outbox/webhook/webhook_store.hpp"

namespace fencepost::outbox {
namespace {

using namespace std::chrono_literals;
using SteadyTime = std::chrono::steady_clock;

constexpr std::size_t kMaxEvents = 512;    // in one round of deliveries
constexpr std::size_t kMaxRetries = 64;    // requests in one round of retries
constexpr auto kLongestProbePause = 5min;  // while the receiver is down
constexpr auto kGonePause = std::chrono::minutes(1);
constexpr auto kFullPause = std::chrono::seconds(1);

}  // namespace

WebhookMetrics::WebhookMetrics(Metrics& metrics)
    : delivered_total(metrics.counter("webhook_requests_total", "Requests to receivers", {{"result", "delivered"}})),
      failed_total(metrics.counter("webhook_requests_total", "Requests to receivers", {{"result", "failed"}})),
      dead_total(metrics.counter("webhook_dead_letters_total", "Events that became dead letters")),
      metrics_(metrics) {}

Metrics::Histogram& WebhookMetrics::latency() const {
  return metrics_.latency("webhook_request_duration_seconds", "Duration of a request to a receiver");
}

awaitable<std::unique_ptr<Sink>> WebhookSink::open(Parts parts, Claim claim) {
  const auto id = Uuid::parse(std::string_view(claim.consumer).substr(kWebhookKind.size() + 1));
  if (!id) co_return nullptr;
  auto& pool = parts.database.pool();
  auto webhook = co_await find_webhook(pool, parts.catalog, *id);
  if (!webhook) co_return nullptr;
  auto keys = co_await webhook_keys(pool, *id);
  auto backlog = co_await load_backlog(pool, *id);
  const auto numbers = co_await next_delivery_numbers(pool, *id);
  const auto home = co_await this_executor();
  co_return std::unique_ptr<Sink>(new WebhookSink(home, parts, std::move(claim), std::move(*webhook), std::move(keys),
                                                  std::move(backlog), numbers));
}

WebhookSink::WebhookSink(Executor home, Parts parts, Claim claim, Webhook webhook, WebhookKeys keys,
                         std::vector<Parcel> backlog, DeliveryNumbers numbers)
    : home_(home),
      parts_(parts),
      claim_(std::move(claim)),
      webhook_(std::move(webhook)),
      visibility_(parts.catalog, webhook_.reader),
      sender_(std::make_shared<WebhookSender>(home, webhook_.url, std::move(keys), parts.options, parts.clock)),
      numbers_(numbers),
      random_(SystemRandom().next()) {
  for (auto& parcel : backlog) queue_.add(std::move(parcel));
}

bool WebhookSink::wants(const LogEvent& event) const {
  return visibility_.allows(event) && webhook_.filter.matches(event);
}

std::size_t WebhookSink::room() const {
  return parts_.options.backlog - std::min(queue_.size(), parts_.options.backlog);
}

// Never more than could be stored, so that every offered event can be handled. One, while the receiver is down: a
// probe.
std::size_t WebhookSink::max_batch() const {
  if (down()) return 1;
  const auto most = std::max(kMaxEvents, webhook_.batch);
  return std::clamp<std::size_t>(room(), 1, most);
}

std::shared_ptr<Shipment> WebhookSink::make_shipment(std::vector<Parcel> parcels) const {
  const auto connections = parts_.options.connections;
  // A probe is one request: it may be sent although the receiver is taken to be down.
  const auto before = down() ? connections - 1 : failures_in_row_;
  return std::make_shared<Shipment>(home_, sender_, std::move(parcels),
                                    Shipment::Options{.in_flight = connections,
                                                      .list = webhook_.batch > 0,
                                                      .failures_until_down = connections,
                                                      .failures_before = before});
}

awaitable<Handed> WebhookSink::deliver(std::vector<const LogEvent*> events) {
  if (gone_) co_return Handed{.handled = 0, .retry_after = kGonePause, .error = last_error_};
  if (room() == 0) {
    co_return Handed{.handled = 0,
                     .retry_after = kFullPause,
                     .error = fmt::format("{} events wait for a retry: {}", queue_.size(), last_error_)};
  }
  if (down() && SteadyTime::now() < next_probe_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_probe_ - SteadyTime::now());
    co_return Handed{.handled = 0, .retry_after = left, .error = last_error_};
  }
  events.resize(std::min(events.size(), room()));
  const auto count = events.size();
  // Stored for a retry before a crash that left the position behind them.
  std::erase_if(events, [this](const LogEvent* event) { return queue_.has(event->seq); });
  std::vector<const LogEvent*> free;
  std::vector<const LogEvent*> held;  // behind an event of the backlog
  for (const auto* event : events) (queue_.has_subject(event->subject) ? held : free).push_back(event);

  const auto shipment = make_shipment(pack(webhook_.id, free, webhook_.batch));
  co_await shipment->send();
  learn(*shipment);
  BacklogChange change;
  std::vector<Parcel> parked = pack(webhook_.id, held, 0);
  for (std::size_t i = 0; i < shipment->parcels().size(); ++i) {
    auto& parcel = shipment->parcels()[i];
    const auto& outcome = shipment->outcome(i);
    if (outcome) log_outcome(parcel, *outcome, change);
    if (!outcome || !outcome->delivered()) parked.push_back(std::move(parcel));
  }
  // Outcomes are looked up by message, because the parcels have moved.
  std::map<std::string_view, const Outcome*> outcomes;
  for (const auto& entry : change.deliveries) outcomes.emplace(entry.message, &entry.outcome);
  const auto now = SteadyTime::now();
  for (auto& parcel : parked) {
    parcel.parked_at = parcel.next_try = now;
    const auto found = outcomes.find(parcel.message);
    ParkedParcel entry{.parcel = &parcel, .retry_in = 0ms, .status = {}, .error = {}};
    if (found != outcomes.end()) {
      parcel.attempts = 1;
      entry.retry_in = retry_delay(1, found->second->retry_after, parts_.options, random_);
      entry.status = found->second->status;
      entry.error = found->second->error;
      parcel.next_try = now + entry.retry_in;
    }
    change.park.push_back(std::move(entry));
  }
  if (shipment->gone()) change.disable = "the receiver answered 410 Gone";
  co_await settle(change);
  gone_ = shipment->gone();
  for (auto& parcel : parked) queue_.add(std::move(parcel));
  co_return Handed{.handled = count, .error = down() ? last_error_ : ""};
}

// Remembers whether the receiver works.
void WebhookSink::learn(const Shipment& shipment) {
  const bool was_down = down();
  failures_in_row_ = shipment.failures_in_row();
  if (!down()) {
    failed_probes_ = 0;
    if (was_down) {
      for (auto& parcel : queue_.parcels()) parcel.next_try = SteadyTime::now();
    }
    return;
  }
  ++failed_probes_;
  auto probing = parts_.options;
  probing.retry_cap = std::min<std::chrono::milliseconds>(probing.retry_cap, kLongestProbePause);
  next_probe_ = SteadyTime::now() + retry_delay(failed_probes_, shipment.retry_after(), probing, random_);
}

void WebhookSink::log_outcome(const Parcel& parcel, const Outcome& outcome, BacklogChange& change) const {
  const auto& first = parcel.events.front();
  change.deliveries.push_back({.message = parcel.message,
                               .seq = first.seq,
                               .events = parcel.events.size(),
                               .type = first.type,
                               .subject = first.subject,
                               .attempt = parcel.attempts + 1,
                               .outcome = outcome});
}

awaitable<> WebhookSink::settle(const BacklogChange& change) {
  for (const auto& entry : change.deliveries) {
    (entry.outcome.delivered() ? parts_.metrics.delivered_total : parts_.metrics.failed_total).Increment();
    parts_.metrics.latency().Observe(std::chrono::duration<double>(entry.outcome.latency).count());
  }
  if (!change.deliveries.empty()) {
    const auto failed = std::ranges::find_if(change.deliveries, [](const auto& e) { return !e.outcome.delivered(); });
    last_error_ = failed == change.deliveries.end() ? "" : failed->outcome.error;
  }
  co_await store_change(parts_.database.pool(), claim_, webhook_.id, change, numbers_);
}

// The parcels to send now. While the receiver is down: the one that is due first, as a probe.
std::vector<ParcelQueue::Place> WebhookSink::due() {
  const auto now = SteadyTime::now();
  auto ready = queue_.ready();
  if (down()) {
    if (now < next_probe_ || ready.empty()) return {};
    return {*std::ranges::min_element(ready, {}, [](const auto& place) { return place->next_try; })};
  }
  std::erase_if(ready, [&](const auto& place) { return place->next_try > now; });
  if (ready.size() > kMaxRetries) ready.resize(kMaxRetries);
  return ready;
}

std::optional<std::chrono::milliseconds> WebhookSink::next_due() {
  if (queue_.empty()) return std::nullopt;
  auto when = next_probe_;
  if (!down()) {
    const auto ready = queue_.ready();
    when = (*std::ranges::min_element(ready, {}, [](const auto& place) { return place->next_try; }))->next_try;
  }
  return std::max(std::chrono::ceil<std::chrono::milliseconds>(when - SteadyTime::now()), 1ms);
}

awaitable<Tended> WebhookSink::tend() {
  if (gone_) co_return Tended{.again_after = kGonePause, .error = last_error_};
  const auto places = due();
  if (places.empty()) co_return Tended{.again_after = next_due(), .error = queue_.empty() ? "" : last_error_};
  std::vector<Parcel> parcels;
  parcels.reserve(places.size());
  for (const auto place : places) parcels.push_back(*place);
  const auto shipment = make_shipment(std::move(parcels));
  co_await shipment->send();
  learn(*shipment);
  BacklogChange change;
  std::vector<ParcelQueue::Place> done;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto& outcome = shipment->outcome(i);
    if (!outcome) continue;
    log_outcome(*places[i], *outcome, change);
    if (outcome->delivered()) {
      for (const auto& event : places[i]->events) change.delivered.push_back(event.seq);
      done.push_back(places[i]);
    } else {
      put_off(*places[i], *outcome, change);
    }
  }
  bury_expired(change, done);
  if (shipment->gone()) change.disable = "the receiver answered 410 Gone";
  co_await settle(change);
  gone_ = shipment->gone();
  for (const auto place : done) queue_.remove(place);
  co_return Tended{.again_after = next_due(), .error = queue_.empty() ? "" : last_error_};
}

void WebhookSink::put_off(Parcel& parcel, const Outcome& outcome, BacklogChange& change) {
  ++parcel.attempts;
  const auto delay = retry_delay(parcel.attempts, outcome.retry_after, parts_.options, random_);
  parcel.next_try = SteadyTime::now() + delay;
  change.put_off.push_back({.parcel = &parcel, .retry_in = delay, .status = outcome.status, .error = outcome.error});
}

// Gives up parcels that failed now and have waited too long; all of that age while the receiver is down, because a
// failed probe stands for all of them.
void WebhookSink::bury_expired(BacklogChange& change, std::vector<ParcelQueue::Place>& done) {
  const auto oldest = SteadyTime::now() - parts_.options.retry_for;
  std::set<const Parcel*> failed;
  for (const auto& entry : change.put_off) failed.insert(entry.parcel);
  if (failed.empty()) return;
  std::set<const Parcel*> delivered;
  for (const auto place : done) delivered.insert(&*place);
  for (auto place = queue_.parcels().begin(); place != queue_.parcels().end(); ++place) {
    if (place->parked_at > oldest || delivered.contains(&*place)) continue;
    if (!down() && !failed.contains(&*place)) continue;
    for (const auto& event : place->events) change.dead.push_back(event.seq);
    done.push_back(place);
  }
  parts_.metrics.dead_total.Increment(static_cast<double>(change.dead.size()));
}

}  // namespace fencepost::outbox

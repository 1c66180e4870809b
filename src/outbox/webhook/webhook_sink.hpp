// Delivers a consumer's events to a webhook's receiver.
//
// Every offered event is handled: delivered, or stored in the backlog for a retry together with the events of its
// subject that come after it. Events of other subjects go on. While the receiver is down, no events are taken and only
// probes are sent, so a receiver that is gone for days costs bounded space: the backlog, and a position that waits.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "outbox/delivery/sink.hpp"
#include "outbox/webhook/backlog_store.hpp"
#include "outbox/webhook/shipment.hpp"
#include "outbox/webhook/webhook.hpp"
#include "pg/database.hpp"
#include "runtime/metrics.hpp"

namespace fencepost::outbox {

struct WebhookMetrics {
  explicit WebhookMetrics(Metrics& metrics);
  Metrics::Counter& delivered_total;  // requests
  Metrics::Counter& failed_total;     // requests
  Metrics::Counter& dead_total;       // events
  // Of requests. Made by the first one: many nodes have no webhook.
  Metrics::Histogram& latency() const;

 private:
  Metrics& metrics_;
};

class WebhookSink final : public Sink {
 public:
  struct Parts {
    pg::Database& database;
    const EventCatalog& catalog;
    const Clock& clock;
    const WebhookOptions& options;
    WebhookMetrics& metrics;
  };

  // nullptr: the webhook is gone.
  static awaitable<std::unique_ptr<Sink>> open(Parts parts, Claim claim);

  bool wants(const LogEvent& event) const override;
  awaitable<Handed> deliver(std::vector<const LogEvent*> events) override;
  std::size_t max_batch() const override;
  awaitable<Tended> tend() override;
  Waiting waiting() const override { return {.events = queue_.size(), .since = queue_.oldest()}; }

 private:
  WebhookSink(Executor home, Parts parts, Claim claim, Webhook webhook, WebhookKeys keys, std::vector<Parcel> backlog,
              DeliveryNumbers numbers);

  std::shared_ptr<Shipment> make_shipment(std::vector<Parcel> parcels) const;
  void learn(const Shipment& shipment);
  void log_outcome(const Parcel& parcel, const Outcome& outcome, BacklogChange& change) const;
  awaitable<> settle(const BacklogChange& change);
  void put_off(Parcel& parcel, const Outcome& outcome, BacklogChange& change);
  void bury_expired(BacklogChange& change, std::vector<ParcelQueue::Place>& done);
  std::vector<ParcelQueue::Place> due();
  std::optional<std::chrono::milliseconds> next_due();
  bool down() const { return failures_in_row_ >= parts_.options.connections; }
  std::size_t room() const;

  Executor home_;
  Parts parts_;
  const Claim claim_;
  const Webhook webhook_;
  EventVisibility visibility_;
  std::shared_ptr<WebhookSender> sender_;
  ParcelQueue queue_;
  DeliveryNumbers numbers_;
  SeededRandom random_;
  std::size_t failures_in_row_ = 0;
  bool gone_ = false;  // the webhook is disabled: nothing more is sent until it is opened again
  int failed_probes_ = 0;
  Deadline next_probe_{};
  std::string last_error_;  // of the receiver; empty: the last request was delivered
};

}  // namespace fencepost::outbox

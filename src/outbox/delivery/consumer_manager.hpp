// Serves the durable consumers of the log on this node: claims its share of them, renews the claims with one statement,
// and runs each claimed consumer (consumer_runner.hpp) on one of the runtime's loops.
//
//   ConsumerManager manager(parts, node_id, {});
//   manager.add_kind("webhook", make_webhook_sink);
//
// When a node dies, its claims expire and the other nodes take them within `claim_duration` + `renew_interval`. Changes
// of consumers arrive by NOTIFY; a lost notification costs at most `renew_interval`.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "outbox/delivery/claim_plan.hpp"
#include "outbox/delivery/consumer_runner.hpp"
#include "outbox/delivery/sink.hpp"
#include "outbox/feed/event_feed.hpp"
#include "pg/database.hpp"
#include "pg/listener.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runtime.hpp"
#include "runtime/worker.hpp"

namespace fencepost::outbox {

struct DeliveryOptions {
  std::chrono::milliseconds claim_duration{6000};
  std::chrono::milliseconds renew_interval{2000};
  // For the batch in flight when a consumer moves or the node stops. Renewals wait for it, so claim_duration must be
  // greater than renew_interval + stop_grace.
  std::chrono::milliseconds stop_grace{2000};
  std::size_t max_consumers = 1000;  // on this node
  BackoffOptions backoff{.initial = std::chrono::milliseconds(500), .cap = std::chrono::minutes(1)};
};

class ConsumerManager {
 public:
  struct Parts {
    Runtime& runtime;
    pg::Database& database;
    pg::Listener& listener;  // not started yet
    EventFeed& feed;
    Clock& clock;
    Metrics& metrics;
  };
  ConsumerManager(Parts parts, std::string node_id, const DeliveryOptions& options);
  ~ConsumerManager();

  // Call before start(). Consumers of other kinds are left to nodes that know them.
  void add_kind(std::string kind, SinkFactory factory);

  // Call both on loop 0. stop() finishes the batches in flight and gives the claims back, within `limit`.
  void start();
  awaitable<> stop(std::chrono::milliseconds limit);

  // Looks at the consumers now. Any thread.
  void wake() { worker_.wake(); }

 private:
  struct Served {
    std::unique_ptr<ConsumerRunner> runner;
    Claim claim;  // with the revision that the runner's sink was made of
    Metrics::Gauge* lag_events;
    Metrics::Gauge* lag_seconds;
  };
  struct KindParts {
    SinkFactory factory;
    Metrics::Counter* delivered_total;
    Metrics::Counter* skipped_total;
  };

  awaitable<Worker::Next> look();
  awaitable<> drop(std::vector<std::string> consumers);
  awaitable<> restart(std::vector<std::string> consumers, const ConsumerOverview& overview, Deadline asked_at);
  awaitable<> release(std::vector<std::string> consumers);
  awaitable<> take(const std::string& kind, std::size_t count);
  awaitable<> serve(TakenClaim taken, Deadline valid_until);
  awaitable<> stop_runners(std::vector<std::string> consumers, std::chrono::milliseconds grace);
  std::vector<ClaimReport> reports() const;
  void forget(const std::string& consumer);
  void renew_locally(const ConsumerOverview& overview, Deadline asked_at);
  void show();

  Parts parts_;
  const std::string node_id_;
  DeliveryOptions options_;
  std::map<std::string, KindParts> kinds_;
  std::map<std::string, Served> served_;  // by consumer
  std::size_t next_loop_ = 0;
  Metrics::Gauge& claimed_gauge_;
  Metrics::Gauge& unclaimed_gauge_;
  Worker worker_;
};

}  // namespace fencepost::outbox

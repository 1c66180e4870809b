// For tests of durable consumers: nodes that share a database, and receivers in memory.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "outbox/delivery/consumer_manager.hpp"
#include "outbox/feed/feed_test_support.hpp"
#include "runtime/completion.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::outbox::testing {

using namespace std::chrono_literals;

// What one consumer received, in order, from any node. Any thread may call.
class Inbox {
 public:
  void add(const LogEvent& event) {
    const std::lock_guard lock(mutex_);
    seqs_.push_back(event.seq);
    types_.push_back(event.type);
    subjects_.push_back(event.subject);
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return seqs_.size();
  }
  std::vector<std::int64_t> seqs() const {
    const std::lock_guard lock(mutex_);
    return seqs_;
  }
  std::vector<std::string> types() const {
    const std::lock_guard lock(mutex_);
    return types_;
  }
  // The seqs of each subject, in the order in which each came first.
  std::map<std::string, std::vector<std::int64_t>> first_by_subject() const {
    const std::lock_guard lock(mutex_);
    std::map<std::string, std::vector<std::int64_t>> out;
    for (std::size_t i = 0; i < seqs_.size(); ++i) {
      auto& seen = out[subjects_[i]];
      if (std::ranges::find(seen, seqs_[i]) == seen.end()) seen.push_back(seqs_[i]);
    }
    return out;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::int64_t> seqs_;
  std::vector<std::string> types_;
  std::vector<std::string> subjects_;
};

// How a receiver behaves; a test may change it while it is used.
struct Receiver {
  Inbox inbox;
  std::atomic<bool> stuck{false};    // deliveries do not end
  std::atomic<bool> failing{false};  // deliveries throw
  std::atomic<int> inside{0};        // deliveries that run now
  std::string type;                  // empty: wants every type
};

class MemorySink final : public Sink {
 public:
  explicit MemorySink(Receiver& receiver) : receiver_(receiver) {}
  bool wants(const LogEvent& event) const override { return receiver_.type.empty() || event.type == receiver_.type; }
  std::size_t max_batch() const override { return 10; }
  awaitable<Handed> deliver(std::vector<const LogEvent*> events) override {
    struct Inside {
      std::atomic<int>& count;
      explicit Inside(std::atomic<int>& c) : count(c) { ++count; }
      ~Inside() { --count; }
    } const inside(receiver_.inside);
    if (receiver_.failing) throw Exception(unavailable("receiver_down", "the receiver is down"));
    asio::steady_timer timer(co_await asio::this_coro::executor);
    while (receiver_.stuck) {
      timer.expires_after(5ms);
      co_await timer.async_wait(asio::use_awaitable);
    }
    for (const auto* event : events) receiver_.inbox.add(*event);
    co_return Handed{.handled = events.size()};
  }

 private:
  Receiver& receiver_;
};

using Receivers = std::map<std::string, std::unique_ptr<Receiver>>;  // by consumer

// Claims of tests are short, so that takeovers are quick.
inline DeliveryOptions quick() {
  return {.claim_duration = 1500ms,
          .renew_interval = 300ms,
          .stop_grace = 300ms,
          .backoff = {.initial = 10ms, .cap = 100ms}};
}

// One node: the feed and the consumers, without the rest.
class DeliveryNode {
 public:
  DeliveryNode(const std::string& dsn, std::string id, const DeliveryOptions& options = quick())
      : database_(runtime_, test::connect_options(dsn), {}, metrics_),
        listener_(runtime_.executor(0), database_.connector(), {}, metrics_),
        feed_(runtime_, database_, listener_, catalog(), {}, metrics_),
        manager_({runtime_, database_, listener_, feed_, clock_, metrics_}, std::move(id), options) {}

  void serve(Receivers& receivers) {
    manager_.add_kind("memory", [&receivers](Claim claim) -> awaitable<std::unique_ptr<Sink>> {
      co_return std::make_unique<MemorySink>(*receivers.at(claim.consumer));
    });
    start();
  }
  void start() {
    runtime_.start();
    runtime_.run_on(0, database_.start());
    runtime_.run_on(0, [](DeliveryNode& node) -> awaitable<> {
      co_await node.feed_.prepare();
      node.listener_.start();
      node.feed_.start();
      node.manager_.start();
    }(*this));
    running_ = true;
  }
  void stop() {
    if (!std::exchange(running_, false)) return;
    runtime_.run_on(0, manager_.stop(3s));
    runtime_.run_on(0, feed_.stop());
    runtime_.run_on(0, listener_.stop());
    runtime_.run_on(0, database_.stop(1s));
    runtime_.stop();
  }
  ~DeliveryNode() { stop(); }

  ConsumerManager& manager() { return manager_; }
  Metrics& metrics() { return metrics_; }
  pg::Database& database() { return database_; }
  Runtime& runtime() { return runtime_; }
  EventFeed& feed() { return feed_; }

 private:
  SystemClock clock_;
  Metrics metrics_;
  Runtime runtime_{{.threads = 2}};
  pg::Database database_;
  pg::Listener listener_;
  EventFeed feed_;
  ConsumerManager manager_;
  bool running_ = false;
};

}  // namespace fencepost::outbox::testing
